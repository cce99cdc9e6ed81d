SELECT tree, wide, from_time, through_time, origin, sequence, place
FROM ledger INDEXED BY ledger_decided WHERE decided_at < ?1 ORDER BY decided_at LIMIT ?2

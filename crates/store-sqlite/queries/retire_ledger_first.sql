SELECT tree, wide, from_time, through_time, origin, sequence, place
FROM ledger INDEXED BY ledger_decided ORDER BY decided_at LIMIT ?1

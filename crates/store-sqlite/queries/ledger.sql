SELECT from_time, through_time, origin, count, at_least, verdict, decided_at, sequence, place
FROM ledger WHERE tree = ?1 AND wide = 0 AND from_time > ?2 AND from_time <= ?3
UNION ALL
SELECT from_time, through_time, origin, count, at_least, verdict, decided_at, sequence, place
FROM ledger WHERE tree = ?1 AND wide = 1 AND from_time <= ?3 AND through_time > ?2
ORDER BY from_time, through_time, origin, sequence, place LIMIT ?4

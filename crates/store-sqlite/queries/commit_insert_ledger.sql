INSERT INTO ledger
    (tree, wide, from_time, through_time, origin, sequence, place, count, at_least, verdict, decided_at)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)

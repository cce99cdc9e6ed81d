INSERT INTO queue_key (queue, key, place, running, turn, rank, run, starts, next_time, end_time)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
ON CONFLICT (queue, key) DO UPDATE SET
    place = excluded.place, running = excluded.running, turn = excluded.turn, rank = excluded.rank,
    run = excluded.run, starts = excluded.starts, next_time = excluded.next_time, end_time = excluded.end_time

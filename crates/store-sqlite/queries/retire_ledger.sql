DELETE FROM ledger
WHERE tree = ?1 AND wide = ?2 AND from_time = ?3 AND through_time = ?4 AND origin = ?5 AND sequence = ?6 AND place = ?7

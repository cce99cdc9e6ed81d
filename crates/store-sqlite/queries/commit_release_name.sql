DELETE FROM schedule_name
WHERE (namespace, id) = (SELECT namespace, id FROM schedule WHERE tree = ?1) AND tree = ?1

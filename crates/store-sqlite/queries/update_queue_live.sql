SELECT key, state, rank, run FROM run_live WHERE queue = ?1

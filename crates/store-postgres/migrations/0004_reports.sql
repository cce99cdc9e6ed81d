-- What a node says about itself: which workers it has heard of, which schedules it found to be broken. Written with its beat.
ALTER TABLE punctual.node ADD COLUMN report bytea;

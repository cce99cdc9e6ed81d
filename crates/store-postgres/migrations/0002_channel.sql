-- Whoever may connect to a database may NOTIFY and LISTEN on every channel whose name they know. So the name of ours is
-- a secret of the schema: who cannot read this table can neither forge what nodes tell each other, nor overhear it.
CREATE TABLE punctual.channel (name text NOT NULL);
INSERT INTO punctual.channel (name) VALUES ('punctual_' || replace(gen_random_uuid()::text, '-', ''));

-- So that the name is in no statement but LISTEN itself, and so hardly ever in a log or a list of what sessions do.
CREATE FUNCTION punctual.tell(word text) RETURNS void LANGUAGE sql
    AS 'SELECT pg_notify(name, word) FROM punctual.channel';

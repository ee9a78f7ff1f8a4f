-- A command waits for the end of the run, to take its results home. Until that is done, the same command gets this run and
-- no new one, also where the run is complete.
ALTER TABLE run ADD COLUMN awaited boolean NOT NULL DEFAULT false;

-- The ledger of one run. Every name is explained here; bulk/ledger/ledger.py is the only writer.
-- Moments are UTC epoch seconds (REAL). `job` and `idx` are an item's job number and its place in the job, both from 0.

-- One row: whose run this is, and what the other tables belong to.
CREATE TABLE meta (
    only          INTEGER PRIMARY KEY CHECK (only = 1),
    name          TEXT NOT NULL,
    base_url      TEXT NOT NULL,
    vendor        TEXT NOT NULL,
    manifest_digest TEXT NOT NULL,
    items_digest  TEXT NOT NULL,
    epoch         INTEGER NOT NULL,  -- of the process that may write; every commit checks it
    generation    INTEGER NOT NULL,  -- of results.jsonl: how often it was rewritten
    results_bytes INTEGER NOT NULL   -- what results.jsonl holds up to the last commit; more of it is a torn tail
);

CREATE TABLE jobs (
    number    INTEGER PRIMARY KEY,
    name      TEXT NOT NULL UNIQUE,
    operation TEXT NOT NULL,
    items     INTEGER NOT NULL
);

-- Numbers for outcomes and error codes, so that ten million rows stay small; 0 is not a word.
CREATE TABLE words (
    number INTEGER PRIMARY KEY,
    word   TEXT NOT NULL UNIQUE
);

-- Writes that have left, or were about to, and whose item has no outcome yet (or the outcome `unknown`, or one that came
-- while an earlier send might still arrive). Else a row goes when the outcome comes, so the table stays small.
CREATE TABLE intents (
    job     INTEGER NOT NULL,
    idx     INTEGER NOT NULL,
    method  TEXT NOT NULL,
    path    TEXT NOT NULL,
    before  BLOB,                    -- what was there before, JSON; NULL: nobody looked
    effect  TEXT NOT NULL,
    sent_at REAL NOT NULL,
    PRIMARY KEY (job, idx)
) WITHOUT ROWID;

-- What was there before a write that succeeded and can be taken back: what `bulk undo` needs. Begun without it, a run gets
-- it empty.
CREATE TABLE IF NOT EXISTS befores (
    job    INTEGER NOT NULL,
    idx    INTEGER NOT NULL,
    before BLOB NOT NULL,            -- JSON
    PRIMARY KEY (job, idx)
) WITHOUT ROWID;

-- How every finished item ended, and where its line stands in results.jsonl.
CREATE TABLE outcomes (
    job         INTEGER NOT NULL,
    idx         INTEGER NOT NULL,
    outcome     INTEGER NOT NULL,    -- words.number
    code        INTEGER NOT NULL,    -- words.number, 0: no error
    http_status INTEGER,
    attempts    INTEGER NOT NULL,
    position    INTEGER NOT NULL,    -- first byte of the line
    length      INTEGER NOT NULL,    -- of the line with its newline (bytes)
    PRIMARY KEY (job, idx)
) WITHOUT ROWID;

-- Sums over `outcomes`, kept in the same transactions: counting ten million rows takes seconds.
CREATE TABLE counts (
    job     INTEGER NOT NULL,
    outcome INTEGER NOT NULL,
    code    INTEGER NOT NULL,
    items   INTEGER NOT NULL,
    bytes   INTEGER NOT NULL,        -- of their lines
    PRIMARY KEY (job, outcome, code)
) WITHOUT ROWID;

-- What the report says beside the counts (times, examples, the timeline), kept in the same transactions as `outcomes`, so
-- that nobody has to read ten million lines for it. job -1: of the whole run. It counts where `items` of all rows is the
-- number of outcomes; else the lines are read. Begun without it, or written by a version that has none, a run gets it
-- empty: that is no other version of the ledger.
CREATE TABLE IF NOT EXISTS tallies (
    job   INTEGER PRIMARY KEY,
    items INTEGER NOT NULL,          -- outcomes that it has taken in
    json  BLOB NOT NULL              -- as bulk/report/tally.py makes it
);

-- Figures by time, for plots; written with the status. That of a run begun without it begins when it is resumed.
CREATE TABLE IF NOT EXISTS timeline (
    minute INTEGER PRIMARY KEY,      -- since the epoch
    data   BLOB NOT NULL             -- samples as bulk/report/timeline.py makes them
);

-- What binds the files of the run directory together: see bulk/ledger/seal.py and companion_files.py. Begun without these three, a
-- run gets them: that is no other version of the ledger.
-- One row: which run this is, how many commits there were (run.seal says how many there are at least), and when the run
-- began by the platform's clock, once that was needed.
CREATE TABLE IF NOT EXISTS seal (
    only         INTEGER PRIMARY KEY CHECK (only = 1),
    run          TEXT NOT NULL,      -- 32 hex digits, by chance
    commits      INTEGER NOT NULL,
    planned_from REAL
);

-- Digests of results.jsonl, one for each piece of it; the last piece grows.
CREATE TABLE IF NOT EXISTS line_chunks (
    start  INTEGER PRIMARY KEY,      -- first byte
    size   INTEGER NOT NULL,         -- bytes
    digest BLOB NOT NULL             -- SHA-256 over those of its lines
);

-- The files beside the ledger that a resume relies on, as they were when they were bound to it.
CREATE TABLE IF NOT EXISTS parts (
    name    TEXT PRIMARY KEY,
    size    INTEGER NOT NULL,        -- bytes
    changed TEXT NOT NULL,           -- times of the file and its number on the disk
    digest  TEXT NOT NULL            -- BLAKE2b, hex
);

-- The digest chain: see bulk/ledger/digests/. That of a run begun without it begins when it is resumed.
CREATE TABLE IF NOT EXISTS links (
    number INTEGER PRIMARY KEY,
    head   BLOB NOT NULL,            -- SHA-256 over the head before it and the leaves
    leaves BLOB NOT NULL             -- 29 bytes each: kind, job, idx, digest
);

-- A row where the run goes on in a store, from which this was exported before it was complete: the command for it, ready
-- for a shell. Nothing is sent from here.
CREATE TABLE IF NOT EXISTS elsewhere (
    command TEXT NOT NULL
);

-- What people did to the run while it went on: who paused, stopped or set what, and when. Begun without it, a run gets it.
CREATE TABLE IF NOT EXISTS actions (
    at     REAL NOT NULL,
    who    TEXT NOT NULL,
    verb   TEXT NOT NULL,
    args   BLOB NOT NULL,            -- JSON
    result TEXT NOT NULL             -- the state of the run after it, or why it was refused
);

-- Every time that a process opened the run for writing.
CREATE TABLE epochs (
    number     INTEGER PRIMARY KEY,
    started_at REAL NOT NULL,
    ended_at   REAL,                 -- NULL: it runs, or it was killed
    pid        INTEGER NOT NULL,
    host       TEXT NOT NULL,
    exit_code  INTEGER,
    why        TEXT,
    status     BLOB                  -- the last RunStatus as JSON
);

-- One row: the newest RunStatus as JSON.
CREATE TABLE status (
    only INTEGER PRIMARY KEY CHECK (only = 1),
    json BLOB
);

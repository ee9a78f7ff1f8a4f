-- The index of items that write, and of reads that wait for items of other jobs. Built in one go while they are checked, then only read; rebuilt rather than repaired.

-- One row for each item that writes, in running order over all jobs: `sequence` is the order within a lane.
CREATE TABLE entries (
    sequence INTEGER PRIMARY KEY,
    lane INTEGER NOT NULL,      -- 63 bits of a hash of resource:folded name; below 0: it is in none
    job INTEGER NOT NULL,       -- number of the job
    item INTEGER NOT NULL,      -- index of the item within its job, from 0
    at INTEGER NOT NULL,        -- offset of its JSON in the source or the spool (bytes); not used for inline items
    size INTEGER NOT NULL,      -- length of its JSON (bytes)
    payload INTEGER NOT NULL,   -- 63 bits of a hash of operation and item without its id: equal for equal writes
    label TEXT                  -- the lane's name as the item spells it; given at least where the lane is new
);

-- Lanes that an item with several names joins: every name points to the one that stands for all.
CREATE TABLE joined (lane INTEGER PRIMARY KEY, root INTEGER NOT NULL);

-- The lanes, most items first within the job of the first item; made from `entries` in the end.
CREATE TABLE lanes (
    rank INTEGER PRIMARY KEY,
    lane INTEGER NOT NULL,
    label TEXT NOT NULL,
    job INTEGER NOT NULL,
    items INTEGER NOT NULL
);

-- Files that items name, as they were when they were checked.
-- `counted`: digest of what counts of what is sent of one; empty where nobody knows.
CREATE TABLE files (name TEXT PRIMARY KEY, digest BLOB NOT NULL, counted BLOB NOT NULL) WITHOUT ROWID;

-- Items of a job whose items are made while the run goes on, that can't be used, why, and what was made (JSON).
CREATE TABLE flaws (item INTEGER PRIMARY KEY, message TEXT NOT NULL, given TEXT NOT NULL);

-- Where the items of a job can be read again that reads and waits by key, in their order: offsets of 8 bytes and lengths of 4.
CREATE TABLE places (job INTEGER PRIMARY KEY, at BLOB NOT NULL, size BLOB NOT NULL);

-- What items wait for, for each need by key in running order: arrays of 4 bytes, see `links.py`.
CREATE TABLE links (edge INTEGER PRIMARY KEY, key_of BLOB NOT NULL, starts BLOB NOT NULL, items BLOB NOT NULL);

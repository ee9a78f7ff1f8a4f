-- Who may do what. A person or a worker gets one of these roles: GRANT bulk_worker TO name.
--   bulk_reader     looks: runs, shards, results; no bundle
--   bulk_submitter  submits, pauses, retries, exports and forgets runs
--   bulk_worker     works on them
REVOKE ALL ON ALL FUNCTIONS IN SCHEMA bulk FROM PUBLIC;
GRANT USAGE ON SCHEMA bulk TO bulk_reader, bulk_submitter, bulk_worker;

GRANT SELECT ON version, word, run, job, shard, intent, outcome, before_image, saved, chunk, count, newborn, worker, participant, minute,
    action, account, bucket, hold, turn, judged TO bulk_reader, bulk_submitter, bulk_worker;

GRANT SELECT, INSERT, DELETE ON bundle_part TO bulk_submitter;
GRANT INSERT ON word, job, shard, action TO bulk_submitter;
GRANT UPDATE ON run, job, shard TO bulk_submitter;
GRANT UPDATE, DELETE ON count TO bulk_submitter;
GRANT DELETE ON outcome TO bulk_submitter;
GRANT EXECUTE ON FUNCTION fence, reopen, make_run, forget_run TO bulk_submitter;

GRANT SELECT ON bundle_part TO bulk_worker;
GRANT INSERT ON word, chunk, outcome, before_image, saved, intent, count, newborn, worker, participant, minute, action,
    account, bucket, hold TO bulk_worker;
GRANT UPDATE ON run, job, shard, turn, intent, before_image, saved, count, newborn, worker, participant, minute, account,
    bucket, hold TO bulk_worker;
GRANT DELETE ON intent, outcome, saved, count, bucket, hold, worker TO bulk_worker;
GRANT EXECUTE ON FUNCTION fence, commit_group, begin_link, shorten_leases, claim, renew, finish_shard, note_made, reopen TO bulk_worker;

-- policy: seats-are-left
-- severity: warning
-- key: job
-- message: {used} of {seats} seats of the license are used
-- description: At least a twentieth of the seats of the license is free. Words instead of numbers mean no bound.
SELECT job, result.seats_used AS used, try_cast(json_extract_string(result.seats, '$') AS BIGINT) AS seats
FROM license_get
WHERE result.seats_used > 0.95 * try_cast(json_extract_string(result.seats, '$') AS BIGINT)

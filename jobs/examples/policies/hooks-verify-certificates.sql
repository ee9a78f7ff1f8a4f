-- policy: hooks-verify-certificates
-- severity: error
-- key: org, id
-- message: {org}: hook {id} does not verify the certificate of its receiver
-- description: No webhook switches the verification of certificates off.
SELECT org, h.id AS id
FROM (SELECT org, unnest(result) AS h FROM webhook_list)
WHERE json_extract_string(h.config.insecure_ssl, '$') = '1'

-- policy: committers-fit-the-license
-- severity: error
-- key: enterprise
-- message: {enterprise}: {active} committers, {purchased} seats of advanced security
-- description: Not more people commit to protected repositories than seats were bought.
SELECT enterprise, result.total_advanced_security_committers AS active,
       result.purchased_advanced_security_committers AS purchased
FROM committers_get
WHERE result.total_advanced_security_committers > result.purchased_advanced_security_committers

//! Quotas: which of Service Quotas' a code of AWS means, by its name there, and its code where that is known for sure.

/// A quota in Service Quotas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Quota {
    pub name: &'static str,
    /// The service it is listed under, and its code: of the VPC and load balancing guides, which link to them.
    pub code: Option<(&'static str, &'static str)>,
}

const fn listed_quota(name: &'static str, service: &'static str, code: &'static str) -> Quota {
    Quota {
        name,
        code: Some((service, code)),
    }
}

/// The quota behind an error; IAM names its own in the message.
pub(super) fn quota_of_error(code: &str, message: &str) -> Option<Quota> {
    Some(match code {
        "AddressLimitExceeded" => listed_quota("EC2-VPC Elastic IPs", "ec2", "L-0263D0A3"),
        "InternetGatewayLimitExceeded" => {
            listed_quota("Internet gateways per Region", "vpc", "L-A4707A72")
        }
        "NatGatewayLimitExceeded" => {
            listed_quota("NAT gateways per Availability Zone", "vpc", "L-FE5A380F")
        }
        "RouteLimitExceeded" => listed_quota("Routes per route table", "vpc", "L-93826ACB"),
        "RouteTableLimitExceeded" => listed_quota("Route tables per VPC", "vpc", "L-589F43AA"),
        "RulesPerSecurityGroupLimitExceeded" => listed_quota(
            "Inbound or outbound rules per security group",
            "vpc",
            "L-0EA8095F",
        ),
        "SecurityGroupLimitExceeded" => {
            listed_quota("VPC security groups per Region", "vpc", "L-E79EC296")
        }
        "SecurityGroupsPerInterfaceLimitExceeded" => {
            listed_quota("Security groups per network interface", "vpc", "L-2AFB9258")
        }
        "SubnetLimitExceeded" => listed_quota("Subnets per VPC", "vpc", "L-407747CB"),
        "TooManyLoadBalancers" => listed_quota(
            "Network Load Balancers per Region",
            "elasticloadbalancing",
            "L-69A177A2",
        ),
        "TooManyTargetGroups" => listed_quota(
            "Target Groups per Region",
            "elasticloadbalancing",
            "L-B22855CB",
        ),
        "VpcEndpointLimitExceeded" => {
            listed_quota("Gateway VPC endpoints per Region", "vpc", "L-1B52E74A")
        }
        "VpcLimitExceeded" => listed_quota("VPCs per Region", "vpc", "L-F678F1CE"),
        "TooManyListeners" => unlisted_quota("Listeners per Network Load Balancer"),
        // One for each type of volume.
        "VolumeLimitExceeded" => unlisted_quota("Storage for volumes of this type, in TiB"),
        "LimitExceeded" if message.contains("RolesPerAccount") => {
            listed_quota("Roles per account", "iam", "L-FE177D64")
        }
        "LimitExceeded" if message.contains("InstanceProfilesPerAccount") => {
            unlisted_quota("Instance profiles per account")
        }
        _ => return None,
    })
}

const fn unlisted_quota(name: &'static str) -> Quota {
    Quota { name, code: None }
}

/// What to do about a quota that is used up.
pub(super) fn quota_hint(code: &str, message: &str) -> String {
    if let "OperationNotPermitted" | "PendingVerification" = code {
        return "AWS has not enabled this in the account yet, as in many new accounts: open a case with AWS Support (\"Account and \
                billing\", https://console.aws.amazon.com/support) and quote the message. Then run this again: it goes on where it \
                ended"
            .to_owned();
    }
    let delete = "delete what is not needed";
    match quota_of_error(code, message) {
        Some(Quota {
            name,
            code: Some((service, number)),
        }) => format!(
            "the quota {name:?} ({number}) is used up: {delete}, or ask for more: `aws service-quotas \
             request-service-quota-increase --service-code {service} --quota-code {number} --desired-value N`"
        ),
        Some(Quota { name, code: None }) => {
            format!("the quota {name:?} is used up: {delete}, or ask for more in Service Quotas")
        }
        None => format!(
            "the quota behind {code} is used up: {delete}, or look for it in Service Quotas and ask for more"
        ),
    }
}

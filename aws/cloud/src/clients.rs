//! The clients of the services that only kctl calls, with the rules of [`aws_client::Clients`].

use aws_client::{Clients, sdk_client};

/// Every client of one account in one region. Cloning is cheap.
#[derive(Clone, Debug)]
pub struct CloudClients {
    shared: Clients,
    pub(crate) autoscaling: aws_sdk_autoscaling::Client,
    pub(crate) classic_elb: aws_sdk_elasticloadbalancing::Client,
    pub(crate) ec2: aws_sdk_ec2::Client,
    pub(crate) elb: aws_sdk_elasticloadbalancingv2::Client,
    pub(crate) events: aws_sdk_eventbridge::Client,
    pub(crate) iam: aws_sdk_iam::Client,
    pub(crate) route53: aws_sdk_route53::Client,
    pub(crate) sqs: aws_sdk_sqs::Client,
}

impl CloudClients {
    /// Clients with the region, credentials, count of calls and fence of `shared`. Calls nothing.
    pub fn new(shared: &Clients) -> Self {
        macro_rules! client {
            ($service:ident) => {
                sdk_client!($service, shared.config(), shared.attempts(), shared.fence())
            };
        }
        Self {
            shared: shared.clone(),
            autoscaling: client!(aws_sdk_autoscaling),
            classic_elb: client!(aws_sdk_elasticloadbalancing),
            ec2: client!(aws_sdk_ec2),
            elb: client!(aws_sdk_elasticloadbalancingv2),
            events: client!(aws_sdk_eventbridge),
            iam: client!(aws_sdk_iam),
            route53: client!(aws_sdk_route53),
            sqs: client!(aws_sdk_sqs),
        }
    }

    /// The clients that these share configuration, count of calls and fence with.
    pub fn shared_clients(&self) -> &Clients {
        &self.shared
    }

    /// The region requests go to.
    pub fn region(&self) -> &str {
        self.shared.region()
    }
}

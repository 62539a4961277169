//! Auto Scaling as protokube asks it.

use super::Ec2QueryClient;
use engine::{Class, Failure};

const VERSION: &str = "2011-01-01";

impl Ec2QueryClient {
    /// Ends an instance's wait for a lifecycle hook of its group. A wait that is over already is no error: Auto Scaling answers
    /// `ValidationError` ("No active Lifecycle Action found"), also if the group is gone.
    pub async fn complete_lifecycle_action(
        &self,
        scaling_group: &str,
        hook: &str,
        instance: &str,
    ) -> Result<(), Failure> {
        let parameters = [
            ("AutoScalingGroupName", scaling_group),
            ("LifecycleHookName", hook),
            ("InstanceId", instance),
            ("LifecycleActionResult", "CONTINUE"),
        ];
        let parameters = parameters.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let action = "CompleteLifecycleAction";
        match self
            .query("autoscaling", action, VERSION, &parameters)
            .await
        {
            Err(failure)
                if failure.class == Class::Invalid && failure.code == "ValidationError" =>
            {
                Ok(())
            }
            answer => answer.map(drop),
        }
    }
}

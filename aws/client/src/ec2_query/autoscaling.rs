//! Auto Scaling as the agents ask it.

use super::{Ec2QueryClient, answer};
use engine::{Class, Failure};

const VERSION: &str = "2011-01-01";

/// An instance as its Auto Scaling group sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScalingMember {
    /// Name of the group.
    pub group: String,
    /// `InService`, `Terminating:Wait`, `Terminating:Proceed`, ...
    pub lifecycle_state: String,
}

impl Ec2QueryClient {
    /// An instance in its Auto Scaling group; `None` if it is in none.
    pub async fn describe_scaling_member(
        &self,
        instance: &str,
    ) -> Result<Option<ScalingMember>, Failure> {
        const ACTION: &str = "DescribeAutoScalingInstances";
        let parameters = [("InstanceIds.member.1".to_owned(), instance.to_owned())];
        let text = self
            .query("autoscaling", ACTION, VERSION, &parameters)
            .await?;
        answer::parse_answer(&format!("autoscaling:{ACTION}"), &text, |root| {
            let list = answer::find_element(root, "AutoScalingInstances")?;
            let member = answer::child_element(list, "member");
            Some(member.and_then(|member| {
                Some(ScalingMember {
                    group: answer::child_value(member, "AutoScalingGroupName")?,
                    lifecycle_state: answer::child_value(member, "LifecycleState")?,
                })
            }))
        })
    }

    /// Ends an instance's wait for a lifecycle hook of its group. False if it waits for none, which is no error: Auto Scaling answers
    /// `ValidationError` ("No active Lifecycle Action found"), also if the wait is over or the group is gone.
    pub async fn complete_lifecycle_action(
        &self,
        scaling_group: &str,
        hook: &str,
        instance: &str,
    ) -> Result<bool, Failure> {
        let waits = [scaling_group, hook, instance];
        let result = Some("CONTINUE");
        self.answer_hook("CompleteLifecycleAction", waits, result)
            .await
    }

    /// Lets an instance wait for a lifecycle hook for the hook's whole time again. AWS allows that until 48 hours or a hundred times the
    /// hook's time are over (Auto Scaling, `RecordLifecycleActionHeartbeat`). False as above.
    pub async fn record_lifecycle_heartbeat(
        &self,
        scaling_group: &str,
        hook: &str,
        instance: &str,
    ) -> Result<bool, Failure> {
        let waits = [scaling_group, hook, instance];
        self.answer_hook("RecordLifecycleActionHeartbeat", waits, None)
            .await
    }

    /// Answers the hook that this instance of the group waits for.
    async fn answer_hook(
        &self,
        action: &str,
        [scaling_group, hook, instance]: [&str; 3],
        result: Option<&str>,
    ) -> Result<bool, Failure> {
        let waits = [
            ("AutoScalingGroupName", scaling_group),
            ("LifecycleHookName", hook),
            ("InstanceId", instance),
        ];
        let result = result.map(|result| ("LifecycleActionResult", result));
        let parameters = waits.into_iter().chain(result);
        let parameters = parameters.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let parameters: Vec<(String, String)> = parameters.collect();
        match self
            .query("autoscaling", action, VERSION, &parameters)
            .await
        {
            Err(failure)
                if failure.class == Class::Invalid && failure.code == "ValidationError" =>
            {
                Ok(false)
            }
            answer => answer.map(|_| true),
        }
    }
}

//! A listener.

use super::lb::Raw as RawBalancer;
use super::{Found, Have, Verbs, created_ready, observed_item, physical};
use crate::names::Names;
use crate::world::AwsWorld;
use aws_client::failure::{Classify, require_answer};
use aws_sdk_elasticloadbalancingv2::types::{
    self as elb, Action, ActionTypeEnum, Certificate, ProtocolEnum,
};
use cloud::{Cloud, Kind, Lb, LbListener, LbTargetGroup};
use engine::{Failure, Observed, Put, Ref, Refs, Removed};
use futures::future::try_join_all;

const CREATE: &str = "elasticloadbalancing:CreateListener";

/// The listeners of these balancers.
pub(crate) async fn fetch(
    world: &AwsWorld,
    of: &[RawBalancer],
) -> Result<Vec<elb::Listener>, Failure> {
    let arns = of.iter().filter_map(|one| one.balancer.load_balancer_arn());
    let found = try_join_all(arns.map(|arn| fetch_of(world, arn))).await?;
    Ok(found.into_iter().flatten().collect())
}

async fn fetch_of(world: &AwsWorld, balancer: &str) -> Result<Vec<elb::Listener>, Failure> {
    let call = world.clients.elb.describe_listeners();
    let pages = call.load_balancer_arn(balancer).into_paginator();
    let found: Result<Vec<_>, _> = pages.items().send().collect().await;
    found.classify_call("elasticloadbalancing:DescribeListeners")
}

pub(crate) fn observe(raw: &elb::Listener, names: &Names) -> Option<Observed<Cloud>> {
    let port = raw.port()?;
    let balancer = names.reference::<Lb>(raw.load_balancer_arn()?);
    let (Ref::Own { name, .. } | Ref::Given(name)) = &balancer;
    let target = raw.default_actions().iter().find_map(|action| {
        let forwards = action.forward_config();
        let weighted = forwards.and_then(|one| one.target_groups().first());
        action
            .target_group_arn()
            .or(weighted.and_then(|one| one.target_group_arn()))
    });
    let certificate = raw.certificates().first();
    let listener = LbListener {
        name: format!("{name}-{port}"),
        port,
        protocol: raw.protocol()?.as_str().to_owned(),
        certificate_arn: certificate.and_then(|one| one.certificate_arn.clone()),
        ssl_policy: raw
            .ssl_policy()
            .filter(|policy| !policy.is_empty())
            .map(ToOwned::to_owned),
        target_group_arn: names.reference::<LbTargetGroup>(target?),
        load_balancer_arn: balancer,
    };
    Some(observed_item(listener, raw.listener_arn()?))
}

impl Verbs for LbListener {
    /// Balancer and port tell listeners apart.
    async fn find(world: &AwsWorld, want: &Self, refs: &Refs) -> Found {
        let balancer = physical(refs, &want.load_balancer_arn, CREATE)?;
        let names = Names::for_references(&want.refs(), refs);
        let found = fetch_of(world, &balancer).await?;
        let same = found.iter().find(|one| one.port() == Some(want.port));
        Ok(same.and_then(|raw| observe(raw, &names)))
    }

    async fn put(
        world: &AwsWorld,
        want: &Self,
        have: Option<Have<'_, Self>>,
        refs: &Refs,
    ) -> Result<Put, Failure> {
        let certificates = want.certificate_arn.as_ref();
        let certificates =
            certificates.map(|arn| vec![Certificate::builder().certificate_arn(arn).build()]);
        let protocol = ProtocolEnum::from(want.protocol.as_str());
        if let Some(have) = have {
            let call = world
                .clients
                .elb
                .modify_listener()
                .listener_arn(have.physical)
                .protocol(protocol)
                .set_certificates(certificates)
                .set_ssl_policy(want.ssl_policy.clone())
                .default_actions(forward_action(want, refs)?);
            call.send()
                .await
                .classify_call("elasticloadbalancing:ModifyListener")?;
            return Ok(created_ready(have.physical));
        }
        let call = world
            .clients
            .elb
            .create_listener()
            .load_balancer_arn(physical(refs, &want.load_balancer_arn, CREATE)?)
            .port(want.port)
            .protocol(protocol)
            .set_certificates(certificates)
            .set_ssl_policy(want.ssl_policy.clone())
            .default_actions(forward_action(want, refs)?);
        let listeners = call.send().await.classify_creation(CREATE)?.listeners;
        let listener = listeners.and_then(|all| all.into_iter().next());
        require_answer(listener.and_then(|one| one.listener_arn), CREATE).map(created_ready)
    }

    async fn remove(world: &AwsWorld, have: Have<'_, Self>) -> Result<Removed, Failure> {
        let call = world.clients.elb.delete_listener();
        let call = call.listener_arn(have.physical).send();
        call.await
            .classify_call("elasticloadbalancing:DeleteListener")?;
        Ok(Removed::Done)
    }
}

fn forward_action(want: &LbListener, refs: &Refs) -> Result<Action, Failure> {
    let target = physical(refs, &want.target_group_arn, CREATE)?;
    let action = Action::builder()
        .r#type(ActionTypeEnum::Forward)
        .target_group_arn(target);
    Ok(action.build())
}

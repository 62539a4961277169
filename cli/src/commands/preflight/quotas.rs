//! Quotas of the account against what others use of them and what the cluster takes at its greatest size.

use super::{Inputs, QUOTAS};
use crate::ui::preflight::PreflightRow;
use aws_client::service_quotas::{ServiceQuota, ServiceQuotas};
use aws_cloud::{AccountUse, InstanceKind, account_use};
use engine::Failure;
use full::greatest_size::{InstanceCount, instance_counts, volume_sizes};
use std::collections::{BTreeMap, BTreeSet};

/// Families of instance types that share quotas, by the letters before the generation, and the codes of their quotas on demand and as
/// spot instances, in vCPUs (<https://docs.aws.amazon.com/ec2/latest/instancetypes/ec2-instance-quotas.html>).
struct Families {
    letters: &'static [&'static str],
    on_demand: &'static str,
    spot: Option<&'static str>,
}

const fn families(
    letters: &'static [&'static str],
    on_demand: &'static str,
    spot: Option<&'static str>,
) -> Families {
    Families {
        letters,
        on_demand,
        spot,
    }
}

const SPECIAL: &[Families] = &[
    families(&["f"], "L-74FC7D96", Some("L-88CF9481")),
    families(&["g", "gr", "vt"], "L-DB2E81BA", Some("L-3819A6DF")),
    families(&["inf"], "L-1945791B", Some("L-B5D1601B")),
    // P5 has a spot quota of its own.
    families(&["p"], "L-417A185B", None),
    families(&["trn"], "L-2C3B7624", Some("L-6B0D517C")),
    families(&["x"], "L-7295265B", Some("L-E3A00192")),
    families(&["dl"], "L-6E869C2A", Some("L-85EED4F7")),
    families(&["hpc"], "L-F7808C92", None),
    families(&["u"], "L-43DA4232", None),
];

/// A, C, D, H, I, M, R, T and Z, whatever letters follow.
const STANDARD: Families = families(&[], "L-1216C47A", Some("L-34B43A08"));

/// The quota of an instance type; `None`: as a spot instance it has none, or its letters do not say which.
fn vcpu_quota(machine_type: &str, spot: bool) -> Option<&'static str> {
    let letters = machine_type
        .split(|char: char| !char.is_ascii_alphabetic())
        .next()
        .unwrap_or_default();
    let mut special = SPECIAL.iter();
    let families = special
        .find(|families| families.letters.contains(&letters))
        .unwrap_or(&STANDARD);
    match spot {
        true => families.spot,
        false => Some(families.on_demand),
    }
}

/// The quota of a volume type, in TiB (<https://docs.aws.amazon.com/ebs/latest/userguide/ebs-resource-quotas.html>).
fn volume_quota(volume_type: &str) -> Option<&'static str> {
    Some(match volume_type {
        "gp2" => "L-D18FCD1D",
        "gp3" => "L-7A658B76",
        "io1" => "L-FD252861",
        "io2" => "L-09BD8365",
        "sc1" => "L-17AF77E8",
        "st1" => "L-82ACEF56",
        "standard" => "L-9CF3C2EB",
        _ => return None,
    })
}

/// What is taken of a quota.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Need {
    /// In use, but for what is part of `wanted`.
    used: u64,
    /// For the cluster at its greatest size.
    wanted: u64,
    unit: &'static str,
    /// Of the unit, in one of the quota's.
    scale: u64,
}

/// By service and code.
type Needs = BTreeMap<(&'static str, &'static str), Need>;

pub(super) async fn check(inputs: &Inputs<'_>) -> Vec<PreflightRow> {
    let counts = instance_counts(inputs.full());
    let types = counts.iter().flat_map(|count| count.machine_types.clone());
    let types: BTreeSet<String> = types.collect();
    let observed = inputs.observed;
    let (clients, target) = (&observed.clients, &observed.target);
    let used = match account_use(clients, &target.account, &target.cluster, &types).await {
        Ok(used) => used,
        Err(failure) => return vec![not_known("all quotas", &failure)],
    };
    let client = match ServiceQuotas::new(observed.clients.shared_clients()) {
        Ok(client) => client,
        Err(failure) => return vec![not_known("all quotas", &failure)],
    };
    let (mut needs, mut rows) = vcpu_needs(&counts, &used);
    needs.extend(volume_needs(inputs, &used));
    needs.extend(object_needs(inputs, &used));
    needs.retain(|_, need| need.wanted > 0);
    // One after the other: Service Quotas takes few calls at a time.
    for ((service, code), need) in &needs {
        rows.push(match client.find(service, code).await {
            Ok(Some(quota)) => row_of_quota(service, code, need, &quota),
            Ok(None) => PreflightRow::not_known(QUOTAS, *code, "this region does not have it"),
            Err(failure) => not_known(code, &failure),
        });
    }
    rows
}

fn not_known(subject: &str, failure: &Failure) -> PreflightRow {
    PreflightRow::not_known(QUOTAS, subject, failure.to_string())
}

fn row_of_quota(service: &str, code: &str, need: &Need, quota: &ServiceQuota) -> PreflightRow {
    let Need {
        used, wanted, unit, ..
    } = need;
    let value = quota.value.saturating_mul(need.scale);
    let all = used + wanted;
    let message = format!(
        "{all} {unit} needed, the quota is {value}: {wanted} for this cluster at maxSize, {used} used by others"
    );
    if all <= value {
        return PreflightRow::fine(QUOTAS, quota.name.clone(), message);
    }
    let asked = all.div_ceil(need.scale.max(1));
    PreflightRow::problem(
        QUOTAS,
        quota.name.clone(),
        message,
        format!(
            "ask for more: `aws service-quotas request-service-quota-increase --service-code {service} --quota-code {code} \
             --desired-value {asked}`; or delete what is not needed, or lower maxSize"
        ),
    )
}

/// vCPUs, and the groups of which they are not known.
fn vcpu_needs(counts: &[InstanceCount], used: &AccountUse) -> (Needs, Vec<PreflightRow>) {
    let mut needs = Needs::new();
    let mut unknown = Vec::new();
    let mut add = |code: &'static str, others: u64, wanted: u64| {
        let need = needs.entry(("ec2", code)).or_insert_with(vcpu_need);
        need.used += others;
        need.wanted += wanted;
    };
    for (InstanceKind { machine_type, spot }, count) in &used.instances {
        let vcpus = used.vcpus.get(machine_type).copied().unwrap_or_default();
        if let Some(code) = vcpu_quota(machine_type, *spot) {
            add(code, vcpus * count, 0);
        }
    }
    for count in counts {
        let shares = [(count.on_demand, false), (count.spot, true)];
        for (instances, spot) in shares.into_iter().filter(|(instances, _)| *instances > 0) {
            match largest_types(&count.machine_types, spot, used) {
                Ok(largest) => {
                    for (code, vcpus) in largest {
                        add(code, 0, vcpus * instances);
                    }
                }
                Err(why) => unknown.push(PreflightRow::not_known(QUOTAS, &count.group, why)),
            }
        }
    }
    (needs, unknown)
}

fn vcpu_need() -> Need {
    Need {
        unit: "vCPUs",
        scale: 1,
        ..Need::default()
    }
}

/// The most vCPUs of an instance by quota: Auto Scaling may take any of the types.
fn largest_types(
    machine_types: &[String],
    spot: bool,
    used: &AccountUse,
) -> Result<BTreeMap<&'static str, u64>, String> {
    if machine_types.is_empty() {
        return Err(
            "AWS chooses the instance types of the group: their vCPUs are not known".to_owned(),
        );
    }
    let mut largest: BTreeMap<&'static str, u64> = BTreeMap::new();
    for machine_type in machine_types {
        let Some(vcpus) = used.vcpus.get(machine_type) else {
            return Err(format!(
                "EC2 does not say how many vCPUs a {machine_type} has"
            ));
        };
        let Some(code) = vcpu_quota(machine_type, spot) else {
            return Err(format!("which quota counts a {machine_type} is not known"));
        };
        let most = largest.entry(code).or_default();
        *most = (*most).max(*vcpus);
    }
    Ok(largest)
}

fn volume_needs(inputs: &Inputs<'_>, used: &AccountUse) -> Needs {
    let sizes = volume_sizes(inputs.full()).into_iter();
    let needs = sizes.filter_map(|(volume_type, wanted)| {
        let code = volume_quota(&volume_type)?;
        let need = Need {
            used: used.volumes.get(&volume_type).copied().unwrap_or_default(),
            wanted,
            unit: "GiB",
            scale: 1024,
        };
        Some((("ebs", code), need))
    });
    needs.collect()
}

/// Of objects that count one each: what an update would create.
fn object_needs(inputs: &Inputs<'_>, used: &AccountUse) -> Needs {
    let need = |kind: &str, used: u64, unit: &'static str| Need {
        used,
        wanted: u64::try_from(inputs.created(kind)).unwrap_or(u64::MAX),
        unit,
        scale: 1,
    };
    let balancers = need("lb", used.network_load_balancers, "load balancers");
    Needs::from([
        (
            ("ec2", "L-0263D0A3"),
            need("eip", used.addresses, "addresses"),
        ),
        (("vpc", "L-F678F1CE"), need("vpc", used.vpcs, "VPCs")),
        (("elasticloadbalancing", "L-69A177A2"), balancers),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_instance_type_counts_for_the_quota_of_its_family() {
        let quota = |machine_type| vcpu_quota(machine_type, false);
        for standard in [
            "t3.medium",
            "m5.large",
            "c7gn.large",
            "im4gn.large",
            "i3en.large",
            "z1d.large",
        ] {
            assert_eq!(quota(standard), Some("L-1216C47A"), "{standard}");
        }
        for (machine_type, code) in [
            ("g4dn.xlarge", "L-DB2E81BA"),
            ("gr6.4xlarge", "L-DB2E81BA"),
            ("inf2.xlarge", "L-1945791B"),
            ("p5.48xlarge", "L-417A185B"),
            ("x2idn.metal", "L-7295265B"),
            ("u-6tb1.56xlarge", "L-43DA4232"),
        ] {
            assert_eq!(quota(machine_type), Some(code), "{machine_type}");
        }
        assert_eq!(vcpu_quota("hpc7g.4xlarge", true), None);
    }

    #[test]
    fn a_group_of_several_types_takes_the_largest_of_each_quota() {
        let counts = [InstanceCount {
            group: "nodes".to_owned(),
            machine_types: ["m5.large", "m5.xlarge", "g4dn.xlarge"]
                .map(str::to_owned)
                .into(),
            on_demand: 2,
            spot: 3,
        }];
        let vcpus = [
            ("m5.large", 2),
            ("m5.xlarge", 4),
            ("g4dn.xlarge", 4),
            ("c5.large", 2),
        ];
        let of_others = InstanceKind {
            machine_type: "c5.large".to_owned(),
            spot: true,
        };
        let used = AccountUse {
            instances: BTreeMap::from([(of_others, 5)]),
            vcpus: vcpus.map(|(name, count)| (name.to_owned(), count)).into(),
            ..AccountUse::default()
        };
        let (needs, unknown) = vcpu_needs(&counts, &used);
        assert!(unknown.is_empty(), "{unknown:?}");
        let taken = |code| {
            let need = &needs[&("ec2", code)];
            (need.used, need.wanted)
        };
        assert_eq!(taken("L-1216C47A"), (0, 8));
        assert_eq!(taken("L-34B43A08"), (10, 12));
        assert_eq!(taken("L-DB2E81BA"), (0, 8));
        assert_eq!(taken("L-3819A6DF"), (0, 12));
    }
}

//! EBS volumes: types and what each takes.

use crate::api::InstanceGroupRole;
use crate::api::instance_group::InstanceGroupSpec;
use crate::expand::least_performance;
use crate::read::Problem;
use node::values::parse_folder;

use super::text::{check_one_of, check_unique};

/// What EBS takes for a type: sizes in GiB, most IOPS and IOPS per GiB, most MiB/s. The least of a type are among the defaults.
struct Limits {
    name: &'static str,
    sizes: (i32, i32),
    iops: Option<(i32, i32)>,
    throughput: Option<i32>,
}

/// EBS' volume types (EC2 user guide, "Amazon EBS volume types").
const TYPES: &[Limits] = &[
    Limits {
        name: "gp3",
        sizes: (1, 65_536),
        iops: Some((80_000, 500)),
        throughput: Some(2_000),
    },
    Limits {
        name: "gp2",
        sizes: (1, 16_384),
        iops: None,
        throughput: None,
    },
    Limits {
        name: "io2",
        sizes: (4, 65_536),
        iops: Some((256_000, 1_000)),
        throughput: None,
    },
    Limits {
        name: "io1",
        sizes: (4, 16_384),
        iops: Some((64_000, 50)),
        throughput: None,
    },
    Limits {
        name: "st1",
        sizes: (125, 16_384),
        iops: None,
        throughput: None,
    },
    Limits {
        name: "sc1",
        sizes: (125, 16_384),
        iops: None,
        throughput: None,
    },
    Limits {
        name: "standard",
        sizes: (1, 1_024),
        iops: None,
        throughput: None,
    },
];

/// A volume, each field with its name in the spec.
pub struct VolumeSettings<'a> {
    pub path: &'a str,
    pub kind: (&'a str, Option<&'a str>),
    pub size: (&'a str, Option<i32>),
    pub iops: (&'a str, Option<i32>),
    pub throughput: (&'a str, Option<i32>),
}

impl VolumeSettings<'_> {
    fn field_path(&self, field: &str) -> String {
        format!("{}.{field}", self.path)
    }
}

pub fn check(spec: &InstanceGroupSpec, problems: &mut Vec<Problem>) {
    check_one(
        &VolumeSettings {
            path: "spec",
            kind: ("rootVolumeType", spec.root_volume_type.as_deref()),
            size: ("rootVolumeSize", spec.root_volume_size),
            iops: ("rootVolumeIops", spec.root_volume_iops),
            throughput: ("rootVolumeThroughput", spec.root_volume_throughput),
        },
        problems,
    );
    if spec.root_volume_delete_on_termination == Some(false) {
        let problem = Problem::warning(
            "spec.rootVolumeDeleteOnTermination",
            "it does nothing, in kOps either: a root volume goes with its instance",
        );
        problems
            .push(problem.hint("remove it; what is to stay belongs on a volume of spec.volumes"));
    }
    for (index, volume) in spec.volumes.iter().enumerate() {
        let path = format!("spec.volumes[{index}]");
        check_device(&format!("{path}.device"), &volume.device, problems);
        if volume.size.is_none() {
            problems.push(
                Problem::error(format!("{path}.size"), "the volume has no size")
                    .hint("add its size in GiB"),
            );
        }
        check_one(
            &VolumeSettings {
                path: &path,
                kind: ("type", volume.type_.as_deref()),
                size: ("size", volume.size),
                iops: ("iops", volume.iops),
                throughput: ("throughput", volume.throughput),
            },
            problems,
        );
    }
    let devices = spec.volumes.iter().enumerate();
    check_unique(
        devices.map(|(index, volume)| {
            (
                format!("spec.volumes[{index}].device"),
                volume.device.as_str(),
            )
        }),
        problems,
    );
    check_mounts(spec, problems);
}

/// Checks the numbers of one volume against its type; without a type against gp3, the default.
pub fn check_one(volume: &VolumeSettings<'_>, problems: &mut Vec<Problem>) {
    let kind = volume.kind.1.unwrap_or("gp3");
    let Some(limits) = TYPES.iter().find(|limits| limits.name == kind) else {
        let names: Vec<&str> = TYPES.iter().map(|limits| limits.name).collect();
        return check_one_of(volume.field_path(volume.kind.0), kind, &names, problems);
    };
    if let Some(size) = volume.size.1 {
        check_bounds(
            volume.field_path(volume.size.0),
            size,
            "GiB",
            kind,
            limits.sizes,
            problems,
        );
    }
    check_iops(volume, limits, problems);
    check_throughput(volume, limits, problems);
}

fn check_iops(volume: &VolumeSettings<'_>, limits: &Limits, problems: &mut Vec<Problem>) {
    let kind = limits.name;
    let path = volume.field_path(volume.iops.0);
    // 0 says nothing.
    let Some(iops) = volume.iops.1.filter(|iops| *iops != 0) else {
        return;
    };
    let Some((high, per_gib)) = limits.iops else {
        return warn_without_effect(path, kind, "IOPS", problems);
    };
    let least = least_performance(kind).0.unwrap_or_default();
    check_performance(path.clone(), iops, "IOPS", kind, (least, high), problems);
    if let Some(size) = volume.size.1
        && i64::from(iops) > i64::from(least).max(i64::from(size) * i64::from(per_gib))
    {
        let problem = Problem::error(
            path,
            format!("{iops} IOPS need more than {size} GiB of {kind}"),
        );
        problems.push(problem.hint(format!("{kind} gives at most {per_gib} IOPS per GiB")));
    }
}

fn check_throughput(volume: &VolumeSettings<'_>, limits: &Limits, problems: &mut Vec<Problem>) {
    let kind = limits.name;
    let path = volume.field_path(volume.throughput.0);
    let Some(throughput) = volume.throughput.1.filter(|throughput| *throughput != 0) else {
        return;
    };
    let Some(high) = limits.throughput else {
        return warn_without_effect(path, kind, "throughput", problems);
    };
    let (least_iops, least) = least_performance(kind);
    let range = (least.unwrap_or_default(), high);
    check_performance(path.clone(), throughput, "MiB/s", kind, range, problems);
    let iops = volume.iops.1.max(least_iops).unwrap_or_default();
    let needed = i64::from(throughput) * 4;
    if needed > i64::from(iops) {
        let problem = Problem::error(
            path,
            format!("{throughput} MiB/s need more than {iops} IOPS"),
        );
        problems.push(problem.hint(format!("set {} to {needed} or more", volume.iops.0)));
    }
}

/// What a type does not let be chosen is not sent to AWS, as in kOps.
fn warn_without_effect(path: String, kind: &str, what: &str, problems: &mut Vec<Problem>) {
    let message = format!("{kind} has no {what} to choose: it has no effect");
    problems.push(Problem::warning(path, message).hint("remove it, or use another type"));
}

/// More than a type has is an error; less is raised when the spec is expanded, as in kOps.
fn check_performance(
    path: String,
    value: i32,
    unit: &str,
    kind: &str,
    (least, high): (i32, i32),
    problems: &mut Vec<Problem>,
) {
    if value > high {
        let problem = Problem::error(path, format!("{value} {unit} are more than {kind} has"));
        problems.push(problem.hint(format!("use {least} to {high}")));
    } else if value > 0 && value < least {
        let message = format!("{kind} has at least {least} {unit}: {value} is raised to that");
        problems.push(Problem::warning(path, message).hint(format!("use {least} to {high}")));
    }
}

fn check_bounds(
    path: String,
    value: i32,
    unit: &str,
    kind: &str,
    (low, high): (i32, i32),
    problems: &mut Vec<Problem>,
) {
    if !(low..=high).contains(&value) {
        let problem = Problem::error(
            path,
            format!("{value} {unit} is more or less than {kind} takes"),
        );
        problems.push(problem.hint(format!("use {low} to {high}")));
    }
}

fn check_device(path: &str, device: &str, problems: &mut Vec<Problem>) {
    let known = ["/dev/sd", "/dev/xvd"].iter().any(|prefix| {
        device.strip_prefix(prefix).is_some_and(|rest| {
            !rest.is_empty()
                && rest
                    .chars()
                    .all(|c| c.is_ascii_lowercase() || c.is_ascii_digit())
        })
    });
    if !known {
        let problem = Problem::error(
            path,
            format!("\"{device}\" is not a device name that EC2 takes"),
        );
        problems.push(problem.hint("use /dev/xvdb, /dev/sdf or the like"));
    }
}

fn check_mounts(spec: &InstanceGroupSpec, problems: &mut Vec<Problem>) {
    let control_plane = spec.role == Some(InstanceGroupRole::ControlPlane);
    for (index, mount) in spec.volume_mounts.iter().enumerate() {
        let path = format!("spec.volumeMounts[{index}]");
        if mount.device.starts_with("/dev/nvme") {
            // NVMe disks are numbered as the kernel finds them (EC2 user guide, "Amazon EBS volumes and NVMe").
            let message = format!(
                "{} may be another disk at the instance's next start",
                mount.device
            );
            let at = format!("{path}.device");
            problems.push(match control_plane {
                true => Problem::error(at, format!("{message}, one of etcd's too"))
                    .hint("use the device of a volume in spec.volumes, such as /dev/xvdf: it is found by that name"),
                false => Problem::warning(at, message).hint(
                    "for a volume in spec.volumes use its device there; an instance store is found by its file system once it has one",
                ),
            });
        }
        if !spec
            .volumes
            .iter()
            .any(|volume| volume.device == mount.device)
            && !mount.device.starts_with("/dev/nvme")
        {
            let problem = Problem::error(
                format!("{path}.device"),
                format!("\"{}\" is no device of spec.volumes", mount.device),
            );
            problems.push(problem.hint("add the volume, or use the name of one"));
        }
        if mount.path.is_empty() {
            let problem = Problem::error(format!("{path}.path"), "the volume has no path");
            problems.push(problem.hint("write where it is mounted, such as /var/lib/data"));
        }
        check_one_of(
            format!("{path}.filesystem"),
            &mount.filesystem,
            &["ext4", "xfs", "ext3", "btrfs"],
            problems,
        );
    }
    let mounts: Vec<_> = spec
        .volume_mounts
        .iter()
        .enumerate()
        .filter_map(|(index, mount)| {
            let path = parse_folder(&mount.path).ok()?;
            Some((format!("spec.volumeMounts[{index}].path"), path))
        })
        .collect();
    check_unique(
        mounts.iter().map(|(at, path)| (at.clone(), path.as_str())),
        problems,
    );
}

#[cfg(test)]
mod tests {
    use super::{VolumeSettings, check_one};

    #[test]
    fn only_what_no_volume_can_have_is_an_error() {
        for (kind, size, iops, throughput, errors, warnings) in [
            ("gp3", 100, None, None, 0, 0),
            ("gp3", 100, Some(1_000), Some(100), 0, 2),
            ("gp3", 100, Some(0), Some(0), 0, 0),
            ("gp3", 100, Some(4_000), Some(1_000), 0, 0),
            ("gp3", 100, Some(100), Some(750), 0, 1),
            ("gp3", 100, None, Some(1_000), 1, 0),
            ("gp3", 200, Some(90_000), None, 1, 0),
            ("gp3", 8, Some(4_001), None, 1, 0),
            ("gp3", 100, None, Some(3_000), 2, 0),
            ("io1", 100, None, None, 0, 0),
            ("io1", 100, Some(50), None, 0, 1),
            ("io1", 4, Some(300), Some(125), 1, 1),
            ("io2", 300, Some(256_001), None, 1, 0),
            ("gp2", 100, Some(3_000), Some(125), 0, 2),
            ("standard", 100, Some(1), None, 0, 1),
        ] {
            let mut problems = Vec::new();
            let volume = VolumeSettings {
                path: "spec",
                kind: ("type", Some(kind)),
                size: ("size", Some(size)),
                iops: ("iops", iops),
                throughput: ("throughput", throughput),
            };
            check_one(&volume, &mut problems);
            let found = problems.iter().filter(|one| one.is_error()).count();
            let told = problems.len() - found;
            assert_eq!((found, told), (errors, warnings), "{kind} {problems:?}");
        }
    }
}

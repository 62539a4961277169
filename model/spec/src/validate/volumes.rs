//! EBS volumes: types and what each takes.

use crate::api::InstanceGroupRole;
use crate::api::instance_group::InstanceGroupSpec;
use crate::read::Problem;
use node::values::parse_folder;

use super::text::{check_one_of, check_unique};

/// What EBS takes for a type: sizes in GiB, IOPS, IOPS per GiB, MiB/s.
struct Limits {
    name: &'static str,
    sizes: (i32, i32),
    iops: Option<(i32, i32, i32)>,
    throughput: Option<(i32, i32)>,
}

/// EBS' volume types (EC2 user guide, "Amazon EBS volume types").
const TYPES: &[Limits] = &[
    Limits {
        name: "gp3",
        sizes: (1, 65_536),
        iops: Some((3_000, 80_000, 500)),
        throughput: Some((125, 2_000)),
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
        iops: Some((100, 256_000, 1_000)),
        throughput: None,
    },
    Limits {
        name: "io1",
        sizes: (4, 16_384),
        iops: Some((100, 64_000, 50)),
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
    match (volume.iops.1, limits.iops) {
        (Some(iops), Some((low, high, per_gib))) => {
            check_bounds(path.clone(), iops, "IOPS", kind, (low, high), problems);
            if let Some(size) = volume.size.1
                && i64::from(iops) > i64::from(low).max(i64::from(size) * i64::from(per_gib))
            {
                let problem = Problem::error(
                    path,
                    format!("{iops} IOPS need more than {size} GiB of {kind}"),
                );
                problems.push(problem.hint(format!("{kind} gives at most {per_gib} IOPS per GiB")));
            }
        }
        (Some(_), None) => {
            let problem = Problem::error(path, format!("{kind} has no IOPS to choose"));
            problems.push(problem.hint("remove it, or use gp3, io1 or io2"));
        }
        (None, _) if matches!(kind, "io1" | "io2") => {
            let problem = Problem::error(
                volume.field_path(volume.kind.0),
                format!("{kind} needs its IOPS"),
            );
            problems.push(problem.hint(format!("add {}, or use gp3", volume.iops.0)));
        }
        (None, _) => {}
    }
}

fn check_throughput(volume: &VolumeSettings<'_>, limits: &Limits, problems: &mut Vec<Problem>) {
    let path = volume.field_path(volume.throughput.0);
    match (volume.throughput.1, limits.throughput) {
        (Some(throughput), Some(range)) => {
            check_bounds(
                path.clone(),
                throughput,
                "MiB/s",
                limits.name,
                range,
                problems,
            );
            let (iops, needed) = (volume.iops.1.unwrap_or(3_000), i64::from(throughput) * 4);
            if needed > i64::from(iops) {
                let problem = Problem::error(
                    path,
                    format!("{throughput} MiB/s need more than {iops} IOPS"),
                );
                problems.push(problem.hint(format!("set {} to {needed} or more", volume.iops.0)));
            }
        }
        (Some(_), None) => {
            let problem =
                Problem::error(path, format!("{} has no throughput to choose", limits.name));
            problems.push(problem.hint("remove it, or use gp3"));
        }
        (None, _) => {}
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

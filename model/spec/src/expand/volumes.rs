//! Defaults of EBS volumes.

/// The default volume type.
pub(super) const DEFAULT_TYPE: &str = "gp3";
/// Least IOPS of gp3 volumes: the included amount.
const GP3_IOPS: i32 = 3000;
/// Least throughput of gp3 volumes in MiB/s: the included amount.
const GP3_THROUGHPUT: i32 = 125;
/// Least IOPS of io1 and io2 volumes.
const IO_IOPS: i32 = 100;

/// The least IOPS and throughput of a type, where it lets them be chosen.
pub(crate) fn least_performance(volume_type: &str) -> (Option<i32>, Option<i32>) {
    match volume_type {
        "gp3" => (Some(GP3_IOPS), Some(GP3_THROUGHPUT)),
        "io1" | "io2" => (Some(IO_IOPS), None),
        _ => (None, None),
    }
}

/// Fills in IOPS and throughput, and raises them to the least that the volume type has, as kOps does.
pub(super) fn fill_performance(
    volume_type: &str,
    iops: &mut Option<i32>,
    throughput: &mut Option<i32>,
) {
    let least = least_performance(volume_type);
    for (field, least) in [(iops, least.0), (throughput, least.1)] {
        if let Some(least) = least {
            *field = Some(field.unwrap_or(least).max(least));
        }
    }
}

/// The IOPS to send to AWS: none for types where it cannot be chosen.
pub(super) fn accepted_iops(volume_type: &str, iops: Option<i32>) -> Option<i32> {
    iops.filter(|_| matches!(volume_type, "gp3" | "io1" | "io2"))
}

/// The throughput to send to AWS: none for types where it cannot be chosen.
pub(super) fn accepted_throughput(volume_type: &str, throughput: Option<i32>) -> Option<i32> {
    throughput.filter(|_| volume_type == "gp3")
}

#[cfg(test)]
mod tests {
    use super::{accepted_iops, accepted_throughput, fill_performance};

    #[test]
    fn a_type_gets_what_it_lets_be_chosen() {
        for (volume_type, expected) in [
            ("gp3", (Some(3000), Some(125))),
            ("io1", (Some(100), None)),
            ("io2", (Some(100), None)),
            ("gp2", (None, None)),
            ("st1", (None, None)),
        ] {
            let mut filled = (None, None);
            fill_performance(volume_type, &mut filled.0, &mut filled.1);
            assert_eq!(filled, expected, "{volume_type}");
        }
        for (volume_type, given, expected) in [
            ("gp3", (1000, 100), (Some(3000), Some(125))),
            ("gp3", (4000, 500), (Some(4000), Some(500))),
            ("io1", (50, 7), (Some(100), None)),
            ("io2", (200, 7), (Some(200), None)),
            ("gp2", (50, 7), (None, None)),
        ] {
            let (mut iops, mut throughput) = (Some(given.0), Some(given.1));
            fill_performance(volume_type, &mut iops, &mut throughput);
            let sent = (
                accepted_iops(volume_type, iops),
                accepted_throughput(volume_type, throughput),
            );
            assert_eq!(sent, expected, "{volume_type} {given:?}");
        }
        assert_eq!(accepted_iops("gp2", Some(3000)), None);
        assert_eq!(accepted_throughput("io1", Some(125)), None);
    }
}

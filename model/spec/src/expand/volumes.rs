//! Defaults of EBS volumes.

use super::fill::fill;

/// The default volume type.
pub(super) const DEFAULT_TYPE: &str = "gp3";
/// Default IOPS of gp3 volumes: the included amount.
const GP3_IOPS: i32 = 3000;
/// Default throughput of gp3 volumes in MiB/s: the included amount.
const GP3_THROUGHPUT: i32 = 125;
/// Default IOPS of io1 and io2 volumes.
const IO_IOPS: i32 = 100;

/// Fills in IOPS and throughput, where the volume type lets them be chosen.
pub(super) fn fill_performance(
    volume_type: &str,
    iops: &mut Option<i32>,
    throughput: &mut Option<i32>,
) {
    match volume_type {
        "gp3" => {
            fill(iops, GP3_IOPS);
            fill(throughput, GP3_THROUGHPUT);
        }
        "io1" | "io2" => fill(iops, IO_IOPS),
        _ => {}
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
        assert_eq!(accepted_iops("gp2", Some(3000)), None);
        assert_eq!(accepted_throughput("io1", Some(125)), None);
    }
}

//! What EBS volumes get where the spec says nothing.

use super::fill::fill;

/// Type of volumes that name none.
pub(super) const DEFAULT_TYPE: &str = "gp3";
/// IOPS of gp3 volumes: what is free of charge.
const GP3_IOPS: i32 = 3000;
/// MiB/s of gp3 volumes: what is free of charge.
const GP3_THROUGHPUT: i32 = 125;
/// IOPS of io1 and io2 volumes.
const IO_IOPS: i32 = 100;

/// IOPS and throughput of a volume of a type. Types without a choice of them get none.
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

/// IOPS that AWS accepts for a type: none where there is no choice.
pub(super) fn iops(volume_type: &str, iops: Option<i32>) -> Option<i32> {
    iops.filter(|_| matches!(volume_type, "gp3" | "io1" | "io2"))
}

/// Throughput that AWS accepts for a type: none where there is no choice.
pub(super) fn throughput(volume_type: &str, throughput: Option<i32>) -> Option<i32> {
    throughput.filter(|_| volume_type == "gp3")
}

#[cfg(test)]
mod tests {
    use super::{fill_performance, iops, throughput};

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
        assert_eq!(iops("gp2", Some(3000)), None);
        assert_eq!(throughput("io1", Some(125)), None);
    }
}

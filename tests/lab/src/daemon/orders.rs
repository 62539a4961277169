//! What to do with a machine or a volume, from what AWS says of it and how it is: pure, so that it can be tested whole.

use crate::aws_state::{Instance, InstanceState, Volume};

/// A machine as the daemon knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostStatus {
    /// Not switched off by AWS. A crashed machine is on: AWS sees no difference.
    pub on: bool,
    /// As many reboots as were done for AWS.
    pub reboots: u32,
}

/// One step for a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    Boot,
    Start,
    Reboot,
    Stop,
    /// Remove the host, if there is one, and say that it is gone.
    Terminate,
}

/// The next step for an instance, if any.
pub fn next_host_order(instance: &Instance, now: Option<HostStatus>) -> Option<Order> {
    use InstanceState::{Pending, Running, ShuttingDown, Stopped, Stopping, Terminated};
    match (instance.state, now) {
        (Pending | Running, None) => Some(Order::Boot),
        (Pending, Some(HostStatus { on: false, .. })) => Some(Order::Start),
        (Running, Some(machine)) if machine.on && instance.reboots > machine.reboots => {
            Some(Order::Reboot)
        }
        (Stopping | Stopped, Some(HostStatus { on: true, .. })) | (Stopping, None) => {
            Some(Order::Stop)
        }
        (ShuttingDown, _) | (Terminated, Some(_)) => Some(Order::Terminate),
        _ => None,
    }
}

/// One step for a volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VolumeOrder {
    Attach {
        instance: String,
        device: String,
    },
    /// It is larger now than the machine knows.
    Grow {
        instance: String,
        device: String,
    },
    Detach {
        instance: String,
    },
}

/// Where a volume is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VolumeAttachment {
    pub instance: String,
    /// GiB that the machine sees.
    pub size: u32,
}

/// The next step for a volume, if its machine is there to do it; `attached`: to which machine it is now.
pub fn next_volume_order(
    volume: &Volume,
    attached: Option<&VolumeAttachment>,
    is_on: impl Fn(&str) -> bool,
) -> Option<VolumeOrder> {
    let wanted = volume
        .attachment
        .as_ref()
        .filter(|attachment| attachment.state != "detaching");
    match (wanted, attached) {
        (Some(wanted), None) if is_on(&wanted.instance) => Some(VolumeOrder::Attach {
            instance: wanted.instance.clone(),
            device: wanted.device.clone(),
        }),
        (Some(wanted), Some(now)) if wanted.instance == now.instance => (volume.size > now.size)
            .then(|| VolumeOrder::Grow {
                instance: wanted.instance.clone(),
                device: wanted.device.clone(),
            }),
        (_, Some(now)) => Some(VolumeOrder::Detach {
            instance: now.instance.clone(),
        }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::aws_state::Attachment;

    fn new_instance(state: InstanceState, reboots: u32) -> Instance {
        Instance {
            state,
            reboots,
            ..Instance::new_running("i-1", [10, 0, 0, 4].into())
        }
    }

    /// Following orders leads from every state of a machine to what AWS says, in two steps at most.
    #[test]
    fn orders_lead_to_what_aws_says() {
        use InstanceState::{Pending, Running, ShuttingDown, Stopped, Stopping, Terminated};
        let machine_states = [
            None,
            Some(HostStatus {
                on: true,
                reboots: 0,
            }),
            Some(HostStatus {
                on: false,
                reboots: 0,
            }),
        ];
        for state in [
            Pending,
            Running,
            Stopping,
            Stopped,
            ShuttingDown,
            Terminated,
        ] {
            for reboots in [0, 2] {
                for mut now in machine_states {
                    let mut state = state;
                    for _ in 0..3 {
                        let Some(order) = next_host_order(&new_instance(state, reboots), now)
                        else {
                            break;
                        };
                        match order {
                            Order::Boot | Order::Start | Order::Reboot => {
                                now = Some(HostStatus { on: true, reboots });
                                state = Running;
                            }
                            Order::Stop => {
                                now = now.map(|machine| HostStatus {
                                    on: false,
                                    ..machine
                                });
                                state = Stopped;
                            }
                            Order::Terminate => {
                                now = None;
                                state = Terminated;
                            }
                        }
                    }
                    assert_eq!(
                        next_host_order(&new_instance(state, reboots), now),
                        None,
                        "{state:?} {now:?}"
                    );
                    if matches!(state, Terminated) {
                        assert_eq!(now, None);
                    }
                }
            }
        }
    }

    #[test]
    fn a_volume_goes_where_aws_says_and_leaves_where_it_was_first() {
        let of = |state: &str| Volume {
            id: "vol-1".into(),
            size: 1,
            zone: String::new(),
            attachment: Some(Attachment {
                instance: "i-1".into(),
                device: "/dev/xvdu".into(),
                state: state.into(),
            }),
        };
        let attach = VolumeOrder::Attach {
            instance: "i-1".into(),
            device: "/dev/xvdu".into(),
        };
        let detach = |from: &str| VolumeOrder::Detach {
            instance: from.into(),
        };
        let at = |instance: &str| VolumeAttachment {
            instance: instance.into(),
            size: 1,
        };
        assert_eq!(
            next_volume_order(&of("attaching"), None, |_| true),
            Some(attach)
        );
        assert_eq!(next_volume_order(&of("attaching"), None, |_| false), None);
        assert_eq!(
            next_volume_order(&of("attached"), Some(&at("i-1")), |_| true),
            None
        );
        assert_eq!(
            next_volume_order(&of("attaching"), Some(&at("i-0")), |_| true),
            Some(detach("i-0"))
        );
        assert_eq!(
            next_volume_order(&of("detaching"), Some(&at("i-1")), |_| true),
            Some(detach("i-1"))
        );
        let larger = Volume {
            size: 2,
            ..of("attached")
        };
        let grow = VolumeOrder::Grow {
            instance: "i-1".into(),
            device: "/dev/xvdu".into(),
        };
        assert_eq!(
            next_volume_order(&larger, Some(&at("i-1")), |_| true),
            Some(grow)
        );
        let free = Volume {
            attachment: None,
            ..of("")
        };
        assert_eq!(
            next_volume_order(&free, Some(&at("i-1")), |_| true),
            Some(detach("i-1"))
        );
        assert_eq!(next_volume_order(&free, None, |_| true), None);
    }
}

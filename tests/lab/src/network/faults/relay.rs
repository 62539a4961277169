//! Where late packets wait. Not every kernel has a qdisc that delays, so frames to a host with a delay go to a tap device
//! instead, are read here, kept as long as asked, and written back, from where nft sends them on to the host.

use super::super::error::{Result, doing};
use super::super::{names, netns};
use super::{read, reload};
use crate::place::Place;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::time::Duration;
use tokio::sync::oneshot;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};
use tun_rs::{AsyncDevice, DeviceBuilder, Layer};

/// A frame can be as large as a segmented packet before it is cut.
const FRAME: usize = 1 << 16;
/// How many frames may wait; a link that is that far behind loses what comes next.
const WAITING: usize = 10_000;
/// How often delays are read again.
const REFRESH: Duration = Duration::from_millis(100);

type Delays = BTreeMap<[u8; 6], Duration>;

/// Carries late packets until `stop` is sent or dropped. Blocks: it enters the router's namespace with a runtime of its
/// own, so give it a thread.
pub fn run(place: &Place, stop: oneshot::Receiver<()>) -> Result<()> {
    let work = || {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime
            .map_err(doing("starting a runtime for delayed packets"))?
            .block_on(async {
                tokio::select! { ended = open(place) => ended, _ = stop => Ok(()) }
            })
    };
    netns::inside(&place.router_netns(), work)?
}

async fn open(place: &Place) -> Result<()> {
    let build = || {
        DeviceBuilder::new()
            .name(names::DELAY_LINK)
            .layer(Layer::L2)
            .offload(false)
            .build_async()
    };
    let tap = build().map_err(doing("making the tap device for delayed packets"))?;
    netns::ip(
        &place.router_netns(),
        &["link", "set", names::DELAY_LINK, "mtu", names::MTU, "up"],
    )?;
    reload(place)?;
    carry(place, &tap).await
}

async fn carry(place: &Place, tap: &AsyncDevice) -> Result<()> {
    let mut frame = vec![0; FRAME];
    let mut delays = Delays::new();
    let mut waiting: BinaryHeap<Reverse<(Instant, u64, Vec<u8>)>> = BinaryHeap::new();
    let mut serial = 0;
    let mut refresh = interval(REFRESH);
    refresh.set_missed_tick_behavior(MissedTickBehavior::Skip);
    loop {
        let next = waiting.peek().map(|Reverse((due, ..))| *due);
        tokio::select! {
            _ = refresh.tick() => delays = current(place)?,
            read = tap.recv(&mut frame) => {
                let length = read.map_err(doing("reading a delayed packet"))?;
                let bytes = frame.get(..length).unwrap_or_default();
                let delay = bytes.get(..6).and_then(|mac| delays.get(mac)).copied().unwrap_or_default();
                if waiting.len() < WAITING {
                    serial += 1;
                    waiting.push(Reverse((Instant::now() + delay, serial, bytes.to_vec())));
                }
            }
            () = sleep_until(next.unwrap_or_else(Instant::now)), if next.is_some() => {
                if let Some(Reverse((_, _, bytes))) = waiting.pop() {
                    tap.send(&bytes).await.map_err(doing("sending a delayed packet on"))?;
                }
            }
        }
    }
}

/// Delays by the host's hardware address.
fn current(place: &Place) -> Result<Delays> {
    let faults = read(place)?;
    if faults.hosts.values().all(|host| host.delay == 0) {
        return Ok(Delays::new());
    }
    let world = super::super::snapshot::read(place)?.world;
    let late = world.instances.iter().filter_map(|instance| {
        let delay = faults.hosts.get(&instance.id)?.delay;
        Some((mac(&instance.mac)?, Duration::from_millis(delay.into())))
    });
    Ok(late.collect())
}

fn mac(text: &str) -> Option<[u8; 6]> {
    let bytes: Option<Vec<u8>> = text
        .split(':')
        .map(|part| u8::from_str_radix(part, 16).ok())
        .collect();
    bytes?.try_into().ok()
}

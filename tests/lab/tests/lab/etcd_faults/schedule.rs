//! What happens when: a fault begins at once, and some of what belongs to it later.

use anyhow::{Result, ensure};
use lab::scenario::{Lab, random_fraction, unix_time};

/// The beginning of a fault whose victims are chosen. Returns what is still to happen.
pub type Fault = Box<dyn FnOnce(&Lab) -> Result<Vec<Due>>>;

/// Something that happens later, and is tried until it succeeds.
pub struct Due {
    /// Seconds after the beginning of the fault.
    pub after: f64,
    act: Act,
}

type Act = Box<dyn Fn(&Lab) -> Result<Vec<Due>>>;

impl Due {
    /// `act` returns what is to happen still later, in seconds from then.
    pub fn new(after: f64, act: impl Fn(&Lab) -> Result<Vec<Self>> + 'static) -> Self {
        let act = Box::new(act);
        Self { after, act }
    }

    /// The end of a fault, or a condition for it.
    pub fn once(after: f64, act: impl Fn(&Lab) -> Result<()> + 'static) -> Self {
        Self::new(after, move |lab| act(lab).map(|()| Vec::new()))
    }
}

/// Does what is due of a fault that began at `begun`. Fails while anything is left.
pub fn run_due(lab: &Lab, begun: f64, due: &mut Vec<Due>) -> Result<()> {
    let mut left = Vec::new();
    let mut failed = Ok(());
    for one in due.drain(..) {
        let now = unix_time()? - begun;
        if one.after > now {
            left.push(one);
            continue;
        }
        match (one.act)(lab) {
            Ok(next) => left.extend(next.into_iter().map(|next| Due {
                after: next.after + now,
                ..next
            })),
            Err(error) => {
                failed = Err(error);
                left.push(one);
            }
        }
    }
    *due = left;
    failed?;
    ensure!(
        due.is_empty(),
        "{} parts of the fault are still to come",
        due.len()
    );
    Ok(())
}

/// Random numbers of one fault.
#[derive(Clone)]
pub struct Chance {
    seed: u64,
    position: u64,
    /// Seconds for which AWS is away, if it is.
    pub away: u64,
}

impl Chance {
    pub fn new(seed: u64, number: usize, away: u64) -> Self {
        let seed = seed
            .wrapping_mul(0x0100_0000_01b3)
            .wrapping_add(number as u64);
        Self {
            seed,
            position: 0,
            away,
        }
    }

    pub fn between(&mut self, from: f64, to: f64) -> f64 {
        self.position += 1;
        from + (to - from) * random_fraction(self.seed, self.position)
    }

    /// `count` of all, each equally likely.
    pub fn choose<T>(&mut self, all: Vec<T>, count: usize) -> Vec<T> {
        let mut lots: Vec<(f64, T)> = Vec::new();
        for one in all {
            lots.push((self.between(0.0, 1.0), one));
        }
        lots.sort_by(|one, other| one.0.total_cmp(&other.0));
        lots.into_iter().take(count).map(|(_, one)| one).collect()
    }
}

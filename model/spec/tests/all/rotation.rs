//! The law of rotations: whatever steps somebody makes in whatever order, as long as kctl does not refuse them, every instance accepts what
//! every other one has from the keysets.

use fleet::{KeyHolder, KeyStep, KeyUsers, find_hindrances};
use node::config::{NodeConfig, Role};
use node::pki::{
    ETCD_CLIENTS_CA, KUBERNETES_CA, KeyAlgorithm, Keyset, SERVICE_ACCOUNT, SystemKeys,
    mint_further, mint_keyset, trust_bundle,
};
use proptest::prelude::*;
use test_support::{full_spec, node_config_of};
use time::{Duration, OffsetDateTime};

fn at(hour: i64) -> OffsetDateTime {
    OffsetDateTime::UNIX_EPOCH + Duration::days(20_000) + Duration::hours(hour)
}

/// An instance, with what it has of the keyset.
#[derive(Clone, Debug)]
struct Machine {
    config: NodeConfig,
    launched: i64,
    /// Id of the key that signed what it has.
    has: String,
    /// Ids of the keys that it accepts.
    accepts: Vec<String>,
}

impl Machine {
    /// Boots, as nodeup does.
    fn boot(config: &NodeConfig, keyset: &Keyset, launched: i64) -> Option<Self> {
        let held = config.held_ids(keyset)?;
        let keys = config.held_keys(keyset.clone());
        // The certificates of kubernetes-ca are in NodeConfig; files of other keysets are made at boot.
        let accepts = match keyset.name.as_str() {
            KUBERNETES_CA => held.trusted,
            _ => keys.ids().trusted,
        };
        Some(Self {
            config: config.clone(),
            launched,
            has: keys.primary,
            accepts,
        })
    }

    fn reboot(&mut self, keyset: &Keyset) {
        let again = Self::boot(&self.config, keyset, self.launched).unwrap();
        // A certificate that is still trusted stays.
        if !again.accepts.contains(&self.has) {
            self.has.clone_from(&again.has);
        }
        self.accepts = again.accepts;
    }
}

struct World {
    keyset: Keyset,
    hour: i64,
    /// What each group launches: control planes, workers.
    templates: Vec<NodeConfig>,
    machines: Vec<Machine>,
}

impl World {
    fn new(name: &str) -> Self {
        let mut keys = SystemKeys::issuing_at(at(0));
        let keyset = mint_keyset(name, KeyAlgorithm::EcdsaP256, &mut keys).unwrap();
        let full = full_spec();
        let templates =
            [Role::ControlPlane, Role::Node].map(|role| node_config_of(&full, role, ""));
        let mut world = Self {
            keyset,
            hour: 0,
            templates: templates.to_vec(),
            machines: Vec::new(),
        };
        world.update();
        for template in [0, 0, 1, 1] {
            let machine = Machine::boot(&world.templates[template], &world.keyset, 0);
            world.machines.extend(machine);
        }
        world
    }

    /// `kctl update --yes`.
    fn update(&mut self) {
        let keyset = &self.keyset;
        for config in &mut self.templates {
            if keyset.name == KUBERNETES_CA {
                config.ca_certificates = trust_bundle(keyset);
            }
            config.keysets = config.rotated_keysets(std::slice::from_ref(keyset));
        }
    }

    /// Replaces an instance.
    fn replace(&mut self, position: usize) {
        let machine = &mut self.machines[position];
        let same = |config: &&NodeConfig| config.role == machine.config.role;
        let template = self.templates.iter().find(same).unwrap();
        *machine = Machine::boot(template, &self.keyset, self.hour).unwrap();
    }

    fn replace_all(&mut self) {
        (0..self.machines.len()).for_each(|position| self.replace(position));
    }

    fn holders(&self) -> Vec<KeyHolder> {
        let holder = |name: String, config: &NodeConfig, launched: Option<i64>| KeyHolder {
            name,
            group: Some(config.group.clone()),
            config: Some(config.clone()),
            launched,
            is_next: launched.is_none(),
        };
        let machines = self.machines.iter().enumerate().map(|(number, machine)| {
            let launched = at(machine.launched).unix_timestamp();
            holder(format!("i-{number}"), &machine.config, Some(launched))
        });
        let templates = self.templates.iter();
        machines
            .chain(templates.map(|config| holder(config.group.clone(), config, None)))
            .collect()
    }

    fn create(&mut self) -> String {
        let now = at(self.hour);
        let item = mint_further(&self.keyset, None, &mut SystemKeys::issuing_at(now)).unwrap();
        self.keyset.add(item, now).unwrap()
    }

    fn promote(&mut self, id: &str) -> Result<(), Vec<String>> {
        let mut after = self.keyset.clone();
        after.promote(id).map_err(|error| vec![error.to_string()])?;
        let hindrances =
            find_hindrances(&after, KeyStep::Promote(id), &self.holders(), at(self.hour));
        self.take(after, hindrances)
    }

    fn distrust(&mut self, id: &str) -> Result<(), Vec<String>> {
        let mut after = self.keyset.clone();
        let now = "2030-01-01T00:00:00Z";
        after
            .distrust(id, now)
            .map_err(|error| vec![error.to_string()])?;
        let ids = [id.to_owned()];
        let step = KeyStep::Distrust(&ids);
        let hindrances = find_hindrances(&after, step, &self.holders(), at(self.hour));
        self.take(after, hindrances)
    }

    fn take(&mut self, after: Keyset, hindrances: Vec<String>) -> Result<(), Vec<String>> {
        match hindrances.is_empty() {
            true => {
                self.keyset = after;
                Ok(())
            }
            false => Err(hindrances),
        }
    }

    /// Each accepts what each other one has.
    fn check(&self) -> Result<(), String> {
        for one in &self.machines {
            for other in &self.machines {
                if !other.accepts.contains(&one.has) {
                    return Err(format!(
                        "{} has what {} signed, and {} accepts {:?}",
                        one.config.group, one.has, other.config.group, other.accepts
                    ));
                }
            }
        }
        Ok(())
    }
}

#[derive(Clone, Copy, Debug)]
enum Deed {
    Create,
    Promote(usize),
    Distrust(usize),
    Trust(usize),
    Update,
    Replace(usize),
    ReplaceAll,
    Reboot(usize),
}

fn any_deed() -> impl Strategy<Value = Deed> {
    prop_oneof![
        1 => Just(Deed::Create),
        4 => (0..4_usize).prop_map(Deed::Promote),
        4 => (0..4_usize).prop_map(Deed::Distrust),
        2 => (0..4_usize).prop_map(Deed::Trust),
        4 => Just(Deed::Update),
        4 => (0..4_usize).prop_map(Deed::Replace),
        4 => Just(Deed::ReplaceAll),
        2 => (0..4_usize).prop_map(Deed::Reboot),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn no_step_that_is_not_refused_cuts_anybody_off(
        name in prop_oneof![Just(KUBERNETES_CA), Just(ETCD_CLIENTS_CA), Just(SERVICE_ACCOUNT)],
        deeds in proptest::collection::vec(any_deed(), 1..40),
    ) {
        let mut world = World::new(name);
        for deed in deeds {
            world.hour += 12;
            let id = |world: &World, position: usize| world.keyset.items[position % world.keyset.items.len()].id.clone();
            match deed {
                Deed::Create if world.keyset.items.len() < 4 => { world.create(); }
                Deed::Create => {}
                Deed::Promote(position) => { let id = id(&world, position); world.promote(&id).ok(); }
                Deed::Distrust(position) => { let id = id(&world, position); world.distrust(&id).ok(); }
                Deed::Trust(position) => { let id = id(&world, position); world.keyset.trust(&id).unwrap(); }
                Deed::Update => world.update(),
                Deed::Replace(position) => { let of = position % world.machines.len(); world.replace(of); }
                Deed::ReplaceAll => world.replace_all(),
                Deed::Reboot(position) => {
                    let (of, keyset) = (position % world.machines.len(), world.keyset.clone());
                    world.machines[of].reboot(&keyset);
                }
            }
            let primary = world.keyset.primary().unwrap();
            prop_assert!(primary.distrusted.is_none() && primary.key.is_some());
            prop_assert_eq!(world.check(), Ok(()), "after {:?}", deed);
        }
    }
}

/// What boots and joins is what the gates assume, whatever stage the state store is at.
#[test]
fn a_configuration_that_names_no_keys_has_the_oldest_one() {
    for name in [KUBERNETES_CA, ETCD_CLIENTS_CA, SERVICE_ACCOUNT] {
        let mut world = World::new(name);
        let old = world.keyset.primary.clone();
        let new = world.create();
        for promoted in [false, true] {
            if promoted {
                world.keyset.promote(&new).unwrap();
            }
            for config in &world.templates {
                let Some(held) = config.held_ids(&world.keyset) else {
                    continue;
                };
                assert_eq!((&held.primary, &held.trusted), (&old, &vec![old.clone()]));
                assert_eq!(config.held_keys(world.keyset.clone()).ids(), held);
            }
        }
        world.update();
        for config in &world.templates {
            let keys = config.held_keys(world.keyset.clone());
            assert_eq!(keys, world.keyset);
        }
    }
}

/// The stages of docs/operations/rotate-keys.md, of every keyset that instances have.
#[test]
fn every_stage_is_refused_until_the_one_before_is_everywhere() {
    for name in [KUBERNETES_CA, ETCD_CLIENTS_CA, SERVICE_ACCOUNT] {
        let mut world = World::new(name);
        let old = world.keyset.primary.clone();
        let count = world.machines.len();
        assert_eq!(count, if name == KUBERNETES_CA { 4 } else { 2 });
        let before = world.templates.clone();
        world.update();
        assert_eq!(
            world.templates, before,
            "a keyset with one key says nothing"
        );
        let new = world.create();
        let refused = world.promote(&new).unwrap_err().join("; ");
        assert!(refused.contains("i-0 of control-plane"), "{refused}");
        world.update();
        assert!(world.templates[0] != before[0]);
        assert_eq!(world.templates[1] == before[1], name != KUBERNETES_CA);
        world.promote(&new).unwrap_err();
        (1..count).for_each(|position| world.replace(position));
        assert_eq!(
            world.promote(&new).unwrap_err(),
            [format!(
                "i-0 of {} does not trust it yet",
                world.machines[0].config.group
            )]
        );
        world.replace(0);
        world.promote(&new).unwrap();
        world.distrust(&old).unwrap_err();
        world.update();
        (1..count).for_each(|position| world.replace(position));
        let users = KeyUsers::find(&world.keyset, &old, &world.holders());
        assert_eq!(users.signed_for, ["i-0"]);
        assert_eq!(users.trusted_by.len(), count);
        world.distrust(&old).unwrap_err();
        world.replace(0);
        if name == SERVICE_ACCOUNT {
            let why = world.distrust(&old).unwrap_err().join("; ");
            assert!(why.contains("tokens of a former control plane"), "{why}");
            world.hour += 24;
            let why = world.distrust(&old).unwrap_err().join("; ");
            assert!(why.ends_with("for 2 more hours"), "{why}");
            world.hour += 2;
        }
        world.distrust(&old).unwrap();
        world.update();
        world.replace_all();
        world.check().unwrap();
        assert!(
            world
                .machines
                .iter()
                .all(|one| one.has == new && one.accepts == [new.clone()])
        );
        let users = KeyUsers::find(&world.keyset, &old, &world.holders());
        assert_eq!(users, KeyUsers::default());
    }
}

#[test]
fn an_instance_of_which_nothing_is_known_is_in_the_way() {
    let mut world = World::new(KUBERNETES_CA);
    let new = world.create();
    let mut holders = world.holders();
    for holder in &mut holders {
        holder.config = None;
    }
    let found = find_hindrances(&world.keyset, KeyStep::Promote(&new), &holders, at(0));
    assert_eq!(found.len(), holders.len());
    assert_eq!(
        KeyUsers::find(&world.keyset, &new, &holders).unknown.len(),
        4
    );
}

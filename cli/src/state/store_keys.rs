//! Keys of one cluster's objects.

/// A lock of a cluster. Both may be held at the same time: a rolling update takes long, and stops when a change begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockKind {
    /// For changes of the spec, of AWS and of keys.
    Changes,
    /// For the replacement of instances.
    RollingUpdate,
}

impl LockKind {
    /// The lock that a command holds.
    pub fn of_command(command: &str) -> Self {
        match command {
            "rolling-update" => Self::RollingUpdate,
            _ => Self::Changes,
        }
    }

    /// The option of `kctl lock` that selects it.
    pub fn option(self) -> &'static str {
        match self {
            Self::Changes => "",
            Self::RollingUpdate => " --rolling-update",
        }
    }
}

/// Keys of one cluster's objects, all below its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreKeys {
    cluster: String,
}

impl StoreKeys {
    /// Keys of the cluster with that name.
    pub fn new(cluster: &str) -> Self {
        Self {
            cluster: cluster.to_owned(),
        }
    }

    /// Name of the cluster.
    pub fn cluster(&self) -> &str {
        &self.cluster
    }

    /// The key of a path in the cluster's folder.
    pub fn key_below(&self, path: &str) -> String {
        format!("{}/{path}", self.cluster)
    }

    /// Prefix of all keys of the cluster.
    pub fn prefix(&self) -> String {
        self.key_below("")
    }

    /// Where listings for `update` begin. Addons, assets and backups, of which there may be many, sort before it.
    pub fn before_listed(&self) -> String {
        self.key_below("backups~")
    }

    pub fn config(&self) -> String {
        self.key_below("config")
    }

    /// The completed spec, as of the last update.
    pub fn completed(&self) -> String {
        self.key_below("cluster-completed.spec")
    }

    /// Prefix of the InstanceGroup objects.
    pub fn group_prefix(&self) -> String {
        self.key_below("instancegroup/")
    }

    pub fn group(&self, name: &str) -> String {
        format!("{}{name}", self.group_prefix())
    }

    /// The folder with objects of users.
    pub fn own_folder(&self) -> String {
        self.key_below("clusteraddons/")
    }

    /// The objects of users that `kctl create -f` stores.
    pub fn own_objects(&self) -> String {
        format!("{}default", self.own_folder())
    }

    /// The texts of all InstanceGroup objects.
    pub fn group_texts(&self) -> String {
        self.key_below("instancegroups.json")
    }

    /// What objects hold that `update` writes, by version.
    pub fn object_digests(&self) -> String {
        self.key_below("object-digests.json")
    }

    /// True for what follows from other objects.
    pub fn is_derived(&self, key: &str) -> bool {
        key == self.group_texts() || key == self.object_digests()
    }

    /// Prefix of the public SSH keys.
    pub fn ssh_key_prefix(&self) -> String {
        self.key_below("pki/ssh/public/admin/")
    }

    /// An SSH public key; `fingerprint` is its MD5 in hex, without colons.
    pub fn ssh_key(&self, fingerprint: &str) -> String {
        format!("{}{fingerprint}", self.ssh_key_prefix())
    }

    /// A keyset with its private keys.
    pub fn keyset(&self, name: &str) -> String {
        self.key_below(&node::pki::keyset_path(name))
    }

    /// A secret of the user.
    pub fn secret(&self, name: &str) -> String {
        self.key_below(&node::secret::stored_path(name))
    }

    /// Public halves of all keysets, with the versions that they were read from.
    pub fn public_keys(&self) -> String {
        self.key_below("pki/public.json")
    }

    /// The journal of pending creations.
    pub fn journal(&self) -> String {
        self.key_below("journal/creations.json")
    }

    /// The record of a rolling update that has not ended.
    pub fn rolling_update(&self) -> String {
        self.key_below("rolling-update.json")
    }

    pub fn lock(&self, kind: LockKind) -> String {
        self.key_below(match kind {
            LockKind::Changes => "lock",
            LockKind::RollingUpdate => "rolling-update.lock",
        })
    }

    /// True for locks and records of operations, which say nothing about the cluster.
    pub fn is_process_state(&self, key: &str) -> bool {
        let locks = [LockKind::Changes, LockKind::RollingUpdate].map(|kind| self.lock(kind));
        locks.iter().any(|lock| lock == key)
            || key == self.rolling_update()
            || key.starts_with(&self.operation_prefix())
    }

    /// True for what instances write about themselves, at any time. Plans that need it read it when they are made.
    pub fn is_report(&self, key: &str) -> bool {
        key.starts_with(&self.key_below("nodes/"))
    }

    /// Prefix of the log of operations.
    pub fn operation_prefix(&self) -> String {
        self.key_below("operations/")
    }

    /// The record of an operation.
    pub fn operation(&self, name: &str) -> String {
        format!("{}{name}.json", self.operation_prefix())
    }
}

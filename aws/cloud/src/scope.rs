//! Which cluster a world is about, and by which names its objects are found.

use cloud::{Cloud, OwnTags, S3Object, Tags};
use engine::Observed;
use node::pki::{JsonWebKeySet, Keyset};
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

/// The file with the content of an object that is named by its sha256 (a nodeup or protokube binary): it is sent
/// piece by piece and never held in memory.
pub type AssetSource = Arc<dyn Fn(&S3Object) -> std::io::Result<PathBuf> + Send + Sync>;

/// What the sweep and the verbs must know of a cluster. Names here only say where to look: what is found
/// belongs to the cluster if its tags say so.
#[derive(Clone)]
pub struct Scope {
    pub cluster: String,
    /// Twelve digits.
    pub account: String,
    /// `aws`, `aws-cn`, `aws-us-gov`.
    pub partition: String,
    pub region: String,
    /// Key prefix of the cluster in the store, without a slash at its end: the cluster's name.
    pub base: String,
    /// Every role the cluster may have, whether wanted or not: `masters.NAME`, `nodes.NAME`, `bastions.NAME`.
    pub roles: Vec<String>,
    /// Issuers of service accounts' tokens that the cluster has or has had, with their discovery store: `https://...`, `s3://...`.
    pub issuers: BTreeMap<String, String>,
    /// The keys that verify those tokens; `None`: there are none yet.
    pub token_keys: Option<JsonWebKeySet>,
    /// The hosted zone its records are in, without `/hostedzone/`; `None`: no DNS.
    pub hosted_zone: Option<String>,
    /// Domain names of records that are the cluster's, whether wanted or not; no trailing dots. Those that only
    /// protokube publishes are seen when the cluster goes, and those of former etcd members always.
    pub record_names: Vec<String>,
    /// What the AWS names of its load balancers and target groups begin with: the series' name without the hash.
    pub balancer_prefixes: Vec<String>,
    /// The queue of the node termination handler.
    pub queue: String,
    /// What the names of its event rules begin with.
    pub event_rule_prefix: String,
    /// Destinations of routes that are the cluster's beside the default routes (`additionalRoutes`), wanted
    /// now or before: the rest of a route table is the cloud controller's or the user's.
    pub route_destinations: Vec<String>,
    /// It is an IPv6 cluster: only those have an egress-only internet gateway.
    pub ipv6: bool,
    /// Changes with every apply that ended in an orderly way, and is the same when an interrupted one is
    /// repeated: it makes client tokens that find the object of the interrupted run and none older.
    pub generation: String,
    /// What the spec wants; empty to delete the cluster. Where AWS describes something only one by one, what
    /// is wanted is compared by a digest on its owner, and described only if that differs.
    pub expect: Vec<Cloud>,
    /// The tags that are the cluster's: no others are looked at. `None`, to delete it: all are.
    pub own_tags: Option<OwnTags>,
    /// Describe everything, whatever the digests say.
    pub refresh: bool,
    /// Public half of the keyset that signs objects of the store, for those that are read; `None`: no signature is valid.
    pub signer: Option<Keyset>,
    /// Where the files of content-addressed objects are.
    pub assets: AssetSource,
}

impl Scope {
    /// The tag that says "this is the cluster's and goes with it"; its value is `owned`.
    pub(crate) fn owned_tag(&self) -> String {
        format!("kubernetes.io/cluster/{}", self.cluster)
    }

    /// Those tags of an object of that kind that are the cluster's.
    pub(crate) fn own_tags(&self, kind: &str, tags: Tags) -> Tags {
        match &self.own_tags {
            Some(own) => own.only_own(kind, tags),
            None => tags,
        }
    }

    /// The object without the tags of others.
    pub(crate) fn without_tags_of_others(&self, mut seen: Observed<Cloud>) -> Observed<Cloud> {
        if let Some(own) = &self.own_tags {
            seen.resource = own.without_others(seen.resource);
        }
        seen
    }

    /// True if nothing is wanted: the cluster is being deleted, and everything of it is looked for.
    pub(crate) fn is_deletion(&self) -> bool {
        self.expect.is_empty()
    }

    /// ARN of the OIDC provider of an issuer.
    pub(crate) fn oidc_provider_arn(&self, issuer: &str) -> String {
        let provider = issuer.strip_prefix("https://").unwrap_or(issuer);
        format!(
            "arn:{}:iam::{}:oidc-provider/{provider}",
            self.partition, self.account
        )
    }

    /// The ARN of the queue.
    pub(crate) fn queue_arn(&self) -> String {
        format!(
            "arn:{}:sqs:{}:{}:{}",
            self.partition, self.region, self.account, self.queue
        )
    }
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope")
            .field("cluster", &self.cluster)
            .field("account", &self.account)
            .field("region", &self.region)
            .finish_non_exhaustive()
    }
}

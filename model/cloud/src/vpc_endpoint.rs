//! Gateway endpoints: a way from route tables to S3 that needs no NAT gateway.

use super::listing::{ListingPosition, Section, count_words};
use super::{Kind, Tags};
use engine::Ref;
use serde::{Deserialize, Serialize};

/// A VPC endpoint of type `Gateway`. AWS adds a route to the service's prefix list to each of its route tables. Its VPC and
/// service cannot change.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VpcEndpoint {
    /// `s3.NAME`.
    pub name: String,
    pub vpc_id: Ref,
    /// `com.amazonaws.REGION.s3`.
    pub service_name: String,
    /// Always `Gateway`.
    pub vpc_endpoint_type: String,
    /// Route tables, sorted.
    pub route_table_ids: Vec<Ref>,
    pub tags: Tags,
}

impl VpcEndpoint {
    /// The one type that kctl makes.
    pub const GATEWAY: &str = "Gateway";
}

impl Kind for VpcEndpoint {
    const TYPE: &'static str = "vpc_endpoint";
    const LISTING_POSITION: ListingPosition = ListingPosition(Section::Network, 11);

    fn name(&self) -> String {
        self.name.clone()
    }

    fn refs_mut(&mut self) -> Vec<&mut Ref> {
        let vpc = std::iter::once(&mut self.vpc_id);
        vpc.chain(&mut self.route_table_ids).collect()
    }

    fn refs_changed(&mut self) {
        self.route_table_ids.sort();
    }

    fn tags_mut(&mut self) -> Option<&mut Tags> {
        Some(&mut self.tags)
    }

    fn describe(&self) -> String {
        let tables = count_words(self.route_table_ids.len(), "route table");
        format!("{} for {tables}", self.service_name)
    }

    fn refuses(&self, have: &Self) -> Option<String> {
        let same = self.vpc_id == have.vpc_id && self.service_name == have.service_name;
        (!same).then(|| {
            "a VPC endpoint cannot move to another VPC or service: delete it in AWS and update again".to_owned()
        })
    }
}

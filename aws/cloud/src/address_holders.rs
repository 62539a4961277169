//! What has an address that the spec names.

use crate::CloudClients;
use crate::kinds::blockers::interface_text;
use crate::kinds::ec2::filter;
use aws_client::failure::Classify;
use aws_sdk_ec2::types::Filter;
use cloud::given_addresses::GivenAddress;
use engine::Failure;
use std::collections::BTreeMap;

/// Of these addresses, those that something has, each with a text that names it. One call for all Elastic IPs, one for each private address.
pub async fn address_holders(
    clients: &CloudClients,
    addresses: impl Iterator<Item = &GivenAddress>,
) -> Result<BTreeMap<GivenAddress, String>, Failure> {
    let (mut holders, mut elastic) = (BTreeMap::new(), Vec::new());
    for given in addresses {
        match given {
            GivenAddress::Elastic(allocation) => elastic.push(allocation.clone()),
            GivenAddress::Private { subnet, address } => {
                let holder = find_interface(clients, subnet, address).await?;
                holders.extend(holder.map(|holder| (given.clone(), holder)));
            }
        }
    }
    if !elastic.is_empty() {
        holders.extend(elastic_holders(clients, elastic).await?);
    }
    Ok(holders)
}

async fn elastic_holders(
    clients: &CloudClients,
    allocations: Vec<String>,
) -> Result<Vec<(GivenAddress, String)>, Failure> {
    // By a filter: in the list of ids, one unknown fails them all.
    let by = Filter::builder().name("allocation-id");
    let by = by.set_values(Some(allocations)).build();
    let call = clients.ec2.describe_addresses().filters(by).send();
    let found = call.await.classify_call("ec2:DescribeAddresses")?;
    let found = found.addresses.unwrap_or_default().into_iter();
    let used = found.filter(|one| one.association_id.is_some());
    let used = used.filter_map(|one| {
        let holder = one.instance_id.filter(|id| !id.is_empty());
        let holder = holder.or(one.network_interface_id).unwrap_or_default();
        let public = one.public_ip.unwrap_or_default();
        let address = GivenAddress::Elastic(one.allocation_id?);
        Some((address, format!("{public} of {holder}")))
    });
    Ok(used.collect())
}

async fn find_interface(
    clients: &CloudClients,
    subnet: &str,
    address: &str,
) -> Result<Option<String>, Failure> {
    let call = clients.ec2.describe_network_interfaces();
    let call = call
        .filters(filter("subnet-id", subnet))
        .filters(filter("addresses.private-ip-address", address));
    let found = call.send().await;
    let found = found.classify_call("ec2:DescribeNetworkInterfaces")?;
    Ok(found.network_interfaces().first().map(interface_text))
}

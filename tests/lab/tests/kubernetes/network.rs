//! A VPC with one public subnet, a security group, a role for the control plane: by AWS's API.

use anyhow::{Context, Result};
use lab::scenario::Lab;
use serde_json::{Value, json};

pub const ZONE: &str = "us-east-1a";
/// Of role, profile, group and cluster.
pub const NAME: &str = "by-hand";

pub struct Network {
    pub subnet: String,
    pub routes: String,
    pub group: String,
}

/// A text in an answer.
pub fn text(answer: &Value, path: &str) -> Result<String> {
    let found = answer.pointer(path).and_then(Value::as_str);
    Ok(found
        .with_context(|| format!("no {path} in {answer}"))?
        .to_owned())
}

pub fn make(lab: &mut Lab) -> Result<Network> {
    let ec2 = |operation: &str, parameters: Value| lab.aws("ec2", operation, &parameters);
    let vpc = text(
        &ec2("CreateVpc", json!({"CidrBlock": "10.0.0.0/16"}))?,
        "/Vpc/VpcId",
    )?;
    ec2(
        "ModifyVpcAttribute",
        json!({"VpcId": vpc, "EnableDnsHostnames": {"Value": true}}),
    )?;
    let asked = json!({"VpcId": vpc, "CidrBlock": "10.0.0.0/24", "AvailabilityZone": ZONE});
    let subnet = text(&ec2("CreateSubnet", asked)?, "/Subnet/SubnetId")?;
    let gateway = ec2("CreateInternetGateway", json!({}))?;
    let gateway = text(&gateway, "/InternetGateway/InternetGatewayId")?;
    ec2(
        "AttachInternetGateway",
        json!({"VpcId": vpc, "InternetGatewayId": gateway}),
    )?;
    let routes = ec2("CreateRouteTable", json!({"VpcId": vpc}))?;
    let routes = text(&routes, "/RouteTable/RouteTableId")?;
    let asked =
        json!({"RouteTableId": routes, "DestinationCidrBlock": "0.0.0.0/0", "GatewayId": gateway});
    ec2("CreateRoute", asked)?;
    ec2(
        "AssociateRouteTable",
        json!({"RouteTableId": routes, "SubnetId": subnet}),
    )?;
    let asked = json!({"VpcId": vpc, "GroupName": NAME, "Description": "a cluster by hand"});
    let group = text(&ec2("CreateSecurityGroup", asked)?, "/GroupId")?;
    let rules = json!([
        {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group}]},
        {"IpProtocol": "tcp", "FromPort": 6443, "ToPort": 6443, "IpRanges": [{"CidrIp": "0.0.0.0/0"}]},
    ]);
    ec2(
        "AuthorizeSecurityGroupIngress",
        json!({"GroupId": group, "IpPermissions": rules}),
    )?;
    role(lab)?;
    Ok(Network {
        subnet,
        routes,
        group,
    })
}

/// The cloud controller manager reads EC2 with it.
fn role(lab: &Lab) -> Result<()> {
    let iam = |operation: &str, parameters: Value| lab.aws("iam", operation, &parameters);
    let policy =
        |statement: Value| json!({"Version": "2012-10-17", "Statement": [statement]}).to_string();
    let trust = policy(json!({
        "Effect": "Allow", "Principal": {"Service": "ec2.amazonaws.com"}, "Action": "sts:AssumeRole",
    }));
    iam(
        "CreateRole",
        json!({"RoleName": NAME, "AssumeRolePolicyDocument": trust}),
    )?;
    let may = policy(json!({"Effect": "Allow", "Action": "ec2:Describe*", "Resource": "*"}));
    iam(
        "PutRolePolicy",
        json!({"RoleName": NAME, "PolicyName": NAME, "PolicyDocument": may}),
    )?;
    iam(
        "CreateInstanceProfile",
        json!({"InstanceProfileName": NAME}),
    )?;
    iam(
        "AddRoleToInstanceProfile",
        json!({"InstanceProfileName": NAME, "RoleName": NAME}),
    )?;
    Ok(())
}

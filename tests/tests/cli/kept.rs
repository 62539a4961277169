//! What an update leaves where it is though the spec has no place for it: etcd's volumes, balancers that instances know the
//! API by, what AWS and others added by themselves.

use crate::kctl::{Kctl, KctlOutput};
use crate::scenario::{NAME, REGION, kctl_with_cloud};
use crate::simulator::Simulator;
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// A cluster in AWS with one control plane.
fn made_cluster(simulator: &Simulator, more: &[&str]) -> Kctl {
    let kctl = kctl_with_cloud(simulator);
    let create = ["create", "cluster", NAME, "--zones", "eu-west-1a", "--yes"];
    kctl.run(&[&create[..], more].concat()).expect_success();
    kctl
}

/// etcd's volumes: ids by name.
fn etcd_volumes(simulator: &Simulator) -> BTreeSet<String> {
    let code = "for v in boto('ec2').describe_volumes(Filters=[{'Name': 'tag-key', 'Values': ['k8s.io/etcd/*']}])['Volumes']:\n print(v['VolumeId'])";
    let text = simulator.run_python(REGION, code);
    text.lines().map(ToOwned::to_owned).collect()
}

/// The stored spec, with that text in the place of this one.
fn edit_spec(kctl: &Kctl, from: &str, to: &str) {
    let spec = kctl
        .run(&["get", "cluster", NAME, "-o", "yaml"])
        .expect_success();
    assert!(spec.contains(from), "{spec}");
    let file = kctl.write_file("spec.yaml", &spec.replace(from, to));
    kctl.run(&["replace", "-f", &file]).expect_success();
}

/// Nothing is left to do, and these are shown as kept.
fn assert_kept(kctl: &Kctl, ids: &BTreeSet<String>) {
    let ran = kctl.run(&["update", "--exit-code"]);
    assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
    assert!(ran.out.contains("No changes."), "{}", ran.out);
    let shown = ran.out.split("Kept\n").nth(1).unwrap_or_default();
    for id in ids {
        assert!(shown.contains(id.as_str()), "{id}: {}", ran.out);
    }
    let json: Value =
        serde_json::from_str(&kctl.run(&["update", "-o", "json"]).expect_success()).expect("JSON");
    let kept = json["kept"].as_array().cloned().unwrap_or_default();
    let kept = kept
        .iter()
        .filter_map(|one| Some(one["physical_id"].as_str()?.to_owned()));
    assert_eq!(kept.collect::<BTreeSet<String>>(), *ids);
}

#[test]
fn a_renamed_member_s_volumes_stay_until_the_cluster_goes() {
    let simulator = Simulator::start_simulator();
    let kctl = kctl_with_cloud(&simulator);
    let empty = simulator.list_resources(REGION);
    kctl.run(&["create", "cluster", NAME, "--zones", "eu-west-1a", "--yes"])
        .expect_success();
    let before = etcd_volumes(&simulator);
    assert_eq!(before.len(), 2);
    // No instance has begun to form etcd, so that the members may have other names.
    edit_spec(&kctl, "      name: a\n", "      name: b\n");
    let made = kctl.run(&["update", "--yes"]).expect_success();
    assert!(
        made.contains("only `kctl delete cluster` deletes volumes of etcd"),
        "{made}"
    );
    let after = etcd_volumes(&simulator);
    assert!(after.len() == 4 && after.is_superset(&before), "{after:?}");
    assert_kept(&kctl, &before);
    kctl.run(&["delete", "cluster", NAME, "--yes"])
        .expect_success();
    assert_eq!(simulator.list_resources(REGION), empty);
}

#[test]
fn removed_members_volumes_stay() {
    let simulator = Simulator::start_simulator();
    let kctl = kctl_with_cloud(&simulator);
    let zones = "eu-west-1a,eu-west-1b,eu-west-1c";
    let create = [
        "create",
        "cluster",
        NAME,
        "--zones",
        zones,
        "--control-plane-zones",
        zones,
        "--yes",
    ];
    kctl.run(&create).expect_success();
    let before = etcd_volumes(&simulator);
    assert_eq!(before.len(), 6);
    // No command takes a group away that the spec still needs: somebody writes both to the store.
    let spec = kctl
        .run(&["get", "cluster", NAME, "-o", "yaml"])
        .expect_success();
    let member = |zone: &str| {
        format!(
            "    - encryptedVolume: true\n      instanceGroup: control-plane-eu-west-1{zone}\n      name: {zone}\n"
        )
    };
    let file = kctl.write_file(
        "spec.yaml",
        &spec.replace(&member("b"), "").replace(&member("c"), ""),
    );
    let code = ["b", "c"].map(|zone| format!("boto('s3').delete_object(Bucket='state', Key='clusters/{NAME}/instancegroup/control-plane-eu-west-1{zone}')"));
    simulator.run_python(REGION, &code.join("\n"));
    kctl.run(&["replace", "-f", &file]).expect_success();
    kctl.run(&["update", "--yes"]).expect_success();
    assert_eq!(etcd_volumes(&simulator), before);
    let ran = kctl.run(&["update", "-o", "json"]).expect_success();
    let json: Value = serde_json::from_str(&ran).expect("JSON");
    assert_eq!(json["kept"].as_array().map(Vec::len), Some(4), "{ran}");
}

/// What kctl and nobody else copies a volume with: all its tags.
const COPY: &str = "
ec2 = boto('ec2')
for v in ec2.describe_volumes(Filters=[{'Name': 'tag-key', 'Values': ['k8s.io/etcd/*']}])['Volumes']:
  tags = [t for t in v['Tags'] if not t['Key'].startswith('aws:')]
  print(ec2.create_volume(AvailabilityZone=v['AvailabilityZone'], Size=v['Size'], VolumeType=v['VolumeType'], Encrypted=v['Encrypted'],
    TagSpecifications=[{'ResourceType': 'volume', 'Tags': tags}])['VolumeId'])";

#[test]
fn of_a_volume_and_its_copy_both_stay() {
    let simulator = Simulator::start_simulator();
    let kctl = made_cluster(&simulator, &[]);
    let before = etcd_volumes(&simulator);
    let copies: BTreeSet<String> = simulator
        .run_python(REGION, COPY)
        .lines()
        .map(ToOwned::to_owned)
        .collect();
    assert_eq!(copies.len(), 2);
    let both: BTreeSet<String> = before.union(&copies).cloned().collect();
    kctl.run(&["edit", "cluster", "--set", "spec.cloudLabels.Team=x"])
        .expect_success();
    kctl.run(&["update", "--yes"]).expect_success();
    assert_eq!(etcd_volumes(&simulator), both);
    let ran = kctl.run(&["update", "--exit-code"]);
    assert_eq!(ran.code, 0, "{}", ran.out);
    assert_eq!(
        ran.out.matches("a second one beside vol-").count(),
        2,
        "{}",
        ran.out
    );
}

fn write_record(simulator: &Simulator, etcd: &str) {
    let code = format!(
        "
v = [v for v in boto('ec2').describe_volumes()['Volumes'] if any(t == {{'Key': 'Name', 'Value': 'a.etcd-{etcd}.{NAME}'}} for t in v.get('Tags', []))][0]
import json
record = {{'format': 1, 'generation': {{'clusterId': 'cdf818194e3a8c32', 'token': 't'}}, 'members': {{'a': {{'volume': v['VolumeId'], 'blank': True}}}}}}
boto('s3').put_object(Bucket='state', Key='clusters/{NAME}/etcd/{etcd}.json', Body=json.dumps(record).encode())"
    );
    simulator.run_python(REGION, &code);
}

#[test]
fn a_spec_with_other_members_than_etcd_was_formed_with_is_refused_with_the_way() {
    let simulator = Simulator::start_simulator();
    let kctl = made_cluster(&simulator, &[]);
    write_record(&simulator, "main");
    write_record(&simulator, "events");
    assert_kept(&kctl, &BTreeSet::new());
    kctl.run(&["edit", "ig", "nodes-eu-west-1a", "--set", "spec.maxSize=2"])
        .expect_success();
    kctl.run(&["update", "--plan-out", "saved.plan"])
        .expect_success();
    edit_spec(&kctl, "      name: a\n", "      name: b\n");
    // The index of groups follows from the groups.
    let resources = || {
        let mut all = simulator.list_resources(REGION);
        all.retain(|one| !one.contains("/instancegroups.json "));
        all
    };
    let before = resources();
    let refused = |ran: KctlOutput| {
        assert_eq!(ran.code, 2, "{}{}", ran.out, ran.err);
        for words in [
            "spec.etcdClusters[0].etcdMembers",
            "spec.etcdClusters[1].etcdMembers",
            "etcd cluster main was formed with member a, whose data is on vol-",
            "put member a back in a group of zone eu-west-1a",
            "at least one member with the data has to stay",
        ] {
            assert!(ran.err.contains(words), "{words}: {}", ran.err);
        }
    };
    refused(kctl.run(&["update"]));
    refused(kctl.run(&["update", "--yes"]));
    refused(kctl.run(&["update", "--plan", "saved.plan"]));
    refused(kctl.run(&["update", "--plan", "saved.plan", "--yes"]));
    assert_eq!(resources(), before);
    edit_spec(&kctl, "      name: b\n", "      name: a\n");
    kctl.run(&["update", "--plan", "saved.plan", "--yes"])
        .expect_success();
}

#[test]
fn another_network_is_refused_once_instances_run_the_one_that_is_there() {
    const FLANNEL: &str = "    flannel:\n      backend: vxlan\n";
    const UDP: &str = "    flannel:\n      backend: udp\n";
    const CILIUM: &str =
        "    cilium:\n      enableNodePort: true\n  kubeProxy:\n    enabled: false\n";
    let simulator = Simulator::start_simulator();
    let kctl = made_cluster(&simulator, &["--networking", "flannel"]);
    let get = ["get", "cluster", NAME, "-o", "yaml"];
    let written = kctl.run(&get).expect_success();
    assert!(written.contains(FLANNEL), "{written}");
    let choose = |network: &str| {
        let file = kctl.write_file("spec.yaml", &written.replace(FLANNEL, network));
        kctl.run(&["replace", "-f", &file]).expect_success();
    };
    choose(CILIUM);
    // No instance has begun to form etcd.
    kctl.run(&["update"]).expect_success();
    write_record(&simulator, "main");
    write_record(&simulator, "events");
    for (network, named) in [(CILIUM, "cilium (vxlan)"), (UDP, "flannel (udp)")] {
        choose(network);
        let before = simulator.list_resources(REGION);
        for command in [["update"].as_slice(), &["update", "--yes"]] {
            let ran = kctl.run(command);
            assert_eq!(ran.code, 2, "{}{}", ran.out, ran.err);
            for words in ["spec.networking", "the cluster runs flannel (vxlan)", named] {
                assert!(ran.err.contains(words), "{words}: {}", ran.err);
            }
        }
        assert_eq!(simulator.list_resources(REGION), before);
    }
    choose(FLANNEL);
    kctl.run(&["update"]).expect_success();
}

/// Somebody takes a tag away from the volume that holds etcd's data: kctl does not see it any more, and protokube finds it by its record.
#[test]
fn no_empty_volume_is_made_beside_one_that_lost_a_tag() {
    let simulator = Simulator::start_simulator();
    let kctl = made_cluster(&simulator, &[]);
    write_record(&simulator, "main");
    let tag = format!("kubernetes.io/cluster/{NAME}");
    let change = |verb: &str, value: &str| {
        let code = format!(
            "
ec2 = boto('ec2')
v = [v for v in ec2.describe_volumes()['Volumes'] if any(t == {{'Key': 'Name', 'Value': 'a.etcd-main.{NAME}'}} for t in v.get('Tags', []))][0]
ec2.{verb}(Resources=[v['VolumeId']], Tags=[{{'Key': '{tag}'{value}}}])"
        );
        simulator.run_python(REGION, &code);
    };
    change("delete_tags", "");
    let before = simulator.list_resources(REGION);
    for more in [&["update"][..], &["update", "--yes"]] {
        let ran = kctl.run(more);
        assert_eq!(ran.code, 2, "{}{}", ran.out, ran.err);
        for words in [
            "spec.etcdClusters[0].etcdMembers[0].name",
            "is on vol-",
            "an empty volume would be created instead",
            "restore the tags of",
        ] {
            assert!(ran.err.contains(words), "{words}: {}", ran.err);
        }
    }
    assert_eq!(simulator.list_resources(REGION), before);
    change("create_tags", ", 'Value': 'owned'");
    assert_kept(&kctl, &BTreeSet::new());
}

#[test]
fn etcd_goes_up_one_minor_at_a_time_and_never_down_once_a_machine_runs_it() {
    const OLD: &str = "spec.etcdClusters[*].version=3.5.31";
    const NEW: &str = "spec.etcdClusters[*].version=3.6.12";
    let simulator = Simulator::start_simulator();
    let kctl = made_cluster(&simulator, &["--set", OLD]);
    write_record(&simulator, "main");
    write_record(&simulator, "events");
    let set = |value: &str| {
        kctl.run(&["edit", "cluster", "--set", value])
            .expect_success();
    };
    set(NEW);
    kctl.run(&["update", "--yes"]).expect_success();
    // No instance runs it yet.
    set(OLD);
    kctl.run(&["update", "--plan-out", "saved.plan"])
        .expect_success();
    set(NEW);
    replace_instances(
        &simulator,
        &format!("control-plane-eu-west-1a.masters.{NAME}"),
    );
    assert_eq!(kctl.run(&["update", "--exit-code"]).code, 0);
    set(OLD);
    let before = simulator.list_resources(REGION);
    for command in [
        ["update"].as_slice(),
        &["update", "--yes"],
        &["update", "--plan", "saved.plan", "--yes"],
    ] {
        let ran = kctl.run(command);
        assert_eq!(ran.code, 2, "{}{}", ran.out, ran.err);
        for words in [
            "spec.etcdClusters[1].version",
            "etcd cluster main runs etcd 3.6.12 (i-",
            "etcd cluster events runs etcd 3.6.12 (i-",
            "wants 3.5.31",
            "set spec.etcdClusters[1].version to 3.6.12",
        ] {
            assert!(ran.err.contains(words), "{words}: {}", ran.err);
        }
    }
    assert_eq!(simulator.list_resources(REGION), before);
    // Where no instance runs, what the last update wanted counts.
    let code = format!(
        "boto('autoscaling').update_auto_scaling_group(AutoScalingGroupName='control-plane-eu-west-1a.masters.{NAME}', MinSize=0, DesiredCapacity=0)"
    );
    simulator.run_python(REGION, &code);
    let ran = kctl.run(&["update"]);
    let said = "etcd cluster main runs etcd 3.6.12 (the last update)";
    assert!(ran.code == 2 && ran.err.contains(said), "{}", ran.err);
    kctl.run(&["edit", "cluster", "--set", NEW])
        .expect_success();
    kctl.run(&["update", "--yes"]).expect_success();
}

#[test]
fn api_servers_serve_no_older_minor_once_etcd_was_formed() {
    let simulator = Simulator::start_simulator();
    let kctl = made_cluster(&simulator, &["--kubernetes-version", "1.36.3"]);
    let edit = |words: &[&str]| {
        kctl.run(&[&["edit", "cluster"][..], words].concat())
            .expect_success();
    };
    let older = ["--set", "spec.kubernetesVersion=1.35.7"];
    edit(&older);
    kctl.run(&["update"]).expect_success();
    write_record(&simulator, "main");
    write_record(&simulator, "events");
    let refused = |at: &str| {
        for command in [["update"].as_slice(), &["update", "--yes"]] {
            let ran = kctl.run(command);
            assert_eq!(ran.code, 2, "{}", ran.all_output());
            let said = "API servers of the cluster serve Kubernetes 1.36, and may have stored what 1.35 cannot read";
            let said = format!("{at}: {said}");
            assert!(ran.err.contains(&said), "{said}: {}", ran.err);
        }
    };
    refused("spec.kubernetesVersion");
    // Nor by an emulation.
    let newer = ["--set", "spec.kubernetesVersion=1.36.3"];
    let emulated = ["--set", "spec.kubernetesUpgrade.from=1.35.7"];
    edit(&[newer, emulated].concat());
    refused("spec.kubernetesUpgrade.from");
    edit(&["--unset", "spec.kubernetesUpgrade"]);
    assert_eq!(kctl.run(&["update", "--exit-code"]).code, 0);
}

/// An edit for which the balancer is replaced.
const INTERNAL: &str = "spec.api.loadBalancer.type=Internal";

/// Balancers, listeners and target groups, and how many target groups the control plane's instances join.
fn count_balancing(simulator: &Simulator) -> Vec<usize> {
    let code = format!(
        "
elb = boto('elbv2')
all = elb.describe_load_balancers()['LoadBalancers']
print(len(all))
print(sum(len(elb.describe_listeners(LoadBalancerArn=b['LoadBalancerArn'])['Listeners']) for b in all))
print(len(elb.describe_target_groups()['TargetGroups']))
print(len(boto('autoscaling').describe_auto_scaling_groups(AutoScalingGroupNames=['control-plane-eu-west-1a.masters.{NAME}'])['AutoScalingGroups'][0]['TargetGroupARNs']))"
    );
    let text = simulator.run_python(REGION, &code);
    text.lines()
        .map(|line| line.parse().expect("a number"))
        .collect()
}

/// Every instance of a group is replaced by Auto Scaling.
pub fn replace_instances(simulator: &Simulator, group: &str) {
    let code = format!(
        "
asg = boto('autoscaling')
group = asg.describe_auto_scaling_groups(AutoScalingGroupNames=['{group}'])['AutoScalingGroups'][0]
for i in group['Instances']:
  asg.terminate_instance_in_auto_scaling_group(InstanceId=i['InstanceId'], ShouldDecrementDesiredCapacity=False)"
    );
    simulator.run_python(REGION, &code);
}

#[test]
fn a_balancer_that_is_replaced_stays_until_no_machine_that_runs_names_it() {
    let simulator = Simulator::start_simulator();
    let kctl = made_cluster(&simulator, &["--dns", "none"]);
    assert_eq!(count_balancing(&simulator), [1, 2, 2, 2]);
    kctl.run(&["edit", "cluster", "--set", INTERNAL])
        .expect_success();
    let made = kctl.run(&["update", "--yes"]).expect_success();
    assert!(made.contains("replaced or updated: "), "{made}");
    assert_eq!(count_balancing(&simulator), [2, 4, 4, 4]);
    // Its workers still run.
    let again = kctl.run(&["update", "--exit-code"]);
    assert_eq!(again.code, 0, "{}{}", again.out, again.err);
    let kept = format!("= lb/api.{NAME}  arn:");
    for words in [
        kept.as_str(),
        "(until i-",
        "by its addresses alone)",
        &format!("(with lb/api.{NAME})"),
    ] {
        assert!(again.out.contains(words), "{words}: {}", again.out);
    }
    replace_instances(&simulator, &format!("nodes-eu-west-1a.{NAME}"));
    let later = kctl.run(&["update", "--exit-code"]);
    assert_eq!(later.code, 10, "{}{}", later.out, later.err);
    assert!(!later.out.contains("Kept"), "{}", later.out);
    kctl.run(&["update", "--yes"]).expect_success();
    assert_eq!(count_balancing(&simulator), [1, 2, 2, 2]);
    assert_eq!(kctl.run(&["update", "--exit-code"]).code, 0);
}

#[test]
fn a_balancer_stays_while_a_group_without_instances_may_launch_one_that_names_it() {
    let simulator = Simulator::start_simulator();
    let kctl = made_cluster(&simulator, &["--dns", "none"]);
    let group = "nodes-eu-west-1a";
    let none = ["--set", "spec.minSize=0", "--set", "spec.maxSize=0"];
    kctl.run(&[&["edit", "instancegroup", group][..], &none].concat())
        .expect_success();
    kctl.run(&["update", "--yes"]).expect_success();
    kctl.run(&["edit", "cluster", "--set", INTERNAL])
        .expect_success();
    let made = kctl.run(&["update", "--yes"]).expect_success();
    assert!(
        made.contains(&format!("(until group {group}.{NAME} is")),
        "{made}"
    );
    assert_eq!(count_balancing(&simulator), [2, 4, 4, 4]);
    // The group launches what knows the successor now.
    kctl.run(&["update", "--yes"]).expect_success();
    assert_eq!(count_balancing(&simulator), [1, 2, 2, 2]);
    assert_eq!(kctl.run(&["update", "--exit-code"]).code, 0);
}

#[test]
fn where_names_are_published_a_balancer_that_is_replaced_goes_at_once() {
    let simulator = Simulator::start_simulator();
    simulator.run_python(
        REGION,
        "boto('route53').create_hosted_zone(Name='example.com', CallerReference='1')",
    );
    let kctl = made_cluster(
        &simulator,
        &["--dns", "public", "--api-loadbalancer-type", "public"],
    );
    assert_eq!(count_balancing(&simulator)[0], 1);
    kctl.run(&["edit", "cluster", "--set", INTERNAL])
        .expect_success();
    kctl.run(&["update", "--yes"]).expect_success();
    assert_eq!(count_balancing(&simulator)[0], 1);
    assert_eq!(kctl.run(&["update", "--exit-code"]).code, 0);
}

/// What bears that tag, but for what instances bring along, which have the tags of their launch.
fn tagged_resources(simulator: &Simulator, key: &str) -> BTreeSet<String> {
    let code = format!(
        "
ec2, elb, iam, asg, sqs, events = (boto(s) for s in ('ec2', 'elbv2', 'iam', 'autoscaling', 'sqs', 'events'))
etcd = [v['VolumeId'] for v in ec2.describe_volumes(Filters=[{{'Name': 'tag-key', 'Values': ['k8s.io/etcd/*']}}])['Volumes']]
for t in ec2.describe_tags(Filters=[{{'Name': 'key', 'Values': ['{key}']}}])['Tags']:
  if t['ResourceType'] not in ('instance', 'network-interface', 'volume') or t['ResourceId'] in etcd: print(t['ResourceType'], t['ResourceId'])
for t in asg.describe_tags(Filters=[{{'Name': 'key', 'Values': ['{key}']}}])['Tags']: print('group', t['ResourceId'])
def told(kind, name, tags):
  if any(t['Key'] == '{key}' for t in tags): print(kind, name)
arns = [b['LoadBalancerArn'] for b in elb.describe_load_balancers()['LoadBalancers']]
arns += [g['TargetGroupArn'] for g in elb.describe_target_groups()['TargetGroups']]
for d in elb.describe_tags(ResourceArns=arns)['TagDescriptions']: told(d['ResourceArn'].split(':')[5].split('/')[0], d['ResourceArn'], d['Tags'])
for r in iam.list_roles()['Roles']: told('role', r['RoleName'], iam.list_role_tags(RoleName=r['RoleName'])['Tags'])
for p in iam.list_instance_profiles()['InstanceProfiles']:
  told('profile', p['InstanceProfileName'], iam.get_instance_profile(InstanceProfileName=p['InstanceProfileName'])['InstanceProfile'].get('Tags', []))
for q in sqs.list_queues().get('QueueUrls', []): told('queue', q, [{{'Key': k}} for k in sqs.list_queue_tags(QueueUrl=q).get('Tags', {{}})])
for r in events.list_rules()['Rules']: told('rule', r['Name'], events.list_tags_for_resource(ResourceARN=r['Arn'])['Tags'])"
    );
    let text = simulator.run_python(REGION, &code);
    text.lines().map(ToOwned::to_owned).collect()
}

/// The newest versions of launch templates.
fn template_versions(simulator: &Simulator) -> String {
    simulator.run_python(
        REGION,
        "print(sorted((t['LaunchTemplateName'], t['LatestVersionNumber']) for t in boto('ec2').describe_launch_templates()['LaunchTemplates']))",
    )
}

/// How an account with rules of its own keeps what it was given: volumes that are not encrypted, the bucket's encryption,
/// ranges of addresses.
const KEPT: &str = "
ec2 = boto('ec2')
volumes = ec2.describe_volumes(Filters=[{'Name': 'tag-key', 'Values': ['k8s.io/etcd/*']}])['Volumes']
print(len(volumes), {v['Encrypted'] for v in volumes})
objects = boto('s3').list_objects_v2(Bucket='state')['Contents']
print('aws:kms' in {boto('s3').head_object(Bucket='state', Key=o['Key']).get('ServerSideEncryption') for o in objects})
rules = ec2.describe_security_group_rules()['SecurityGroupRules']
ranges = {r.get('CidrIpv4') or r.get('CidrIpv6') for r in rules}
print(sorted(r for r in ranges if r and r.lower().startswith(('198.51.100.', '2001:db8:', '203.0.113.'))))";

/// A cluster in which AWS has much to rewrite: ranges with host bits, volumes that are to be plain, labels.
fn make_with_everything(kctl: &Kctl) {
    let zones = "eu-west-1a,eu-west-1b,eu-west-1c";
    let create = [
        ["create", "cluster", NAME, "--yes", "--bastion"].as_slice(),
        &["--zones", zones, "--control-plane-zones", zones],
        &["--topology", "private", "--dns", "public"],
        &["--admin-access", "203.0.113.7/24,2001:DB8:0::/32"],
        &["--ssh-access", "198.51.100.9/30"],
        &["--cloud-labels", "Team=x,Owner=Jane Doe"],
        &[
            "--set",
            "spec.etcdClusters[*].etcdMembers[*].encryptedVolume=false",
        ],
    ];
    kctl.run(&create.concat()).expect_success();
}

#[test]
fn an_account_that_tags_encrypts_and_rewrites_what_it_keeps_makes_no_changes() {
    let simulator = Simulator::start_simulator();
    let kctl = kctl_with_cloud(&simulator);
    simulator.run_python(
        REGION,
        "
boto('ec2').enable_ebs_encryption_by_default()
boto('s3').put_bucket_encryption(Bucket='state', ServerSideEncryptionConfiguration={'Rules': [{'ApplyServerSideEncryptionByDefault': {'SSEAlgorithm': 'aws:kms'}}]})
boto('route53').create_hosted_zone(Name='example.com', CallerReference='1')",
    );
    simulator.foreign_tags(&json!({"cost-centre": "4711"}));
    simulator.set_lag(500);
    let empty = simulator.list_resources(REGION);
    let no_changes = || {
        let ran = kctl.run(&["update", "--exit-code"]);
        assert_eq!(ran.code, 0, "{}{}", ran.out, ran.err);
        assert!(
            ran.out.contains("No changes.") && !ran.out.contains("Kept"),
            "{}",
            ran.out
        );
    };
    let changes = || {
        assert_eq!(kctl.run(&["update", "--exit-code"]).code, 10);
        kctl.run(&["update", "--yes"]).expect_success();
        no_changes();
    };
    make_with_everything(&kctl);
    let spec = kctl
        .run(&["get", "cluster", NAME, "-o", "yaml"])
        .expect_success();
    assert_eq!(spec.matches("encryptedVolume: false").count(), 6, "{spec}");
    assert_eq!(
        simulator.run_python(REGION, KEPT),
        "6 {True}\nTrue\n['198.51.100.8/30', '2001:db8::/32', '203.0.113.0/24']"
    );
    no_changes();
    let of_others = tagged_resources(&simulator, "cost-centre");
    let of_kctl = tagged_resources(&simulator, "Team");
    assert!(of_kctl.is_subset(&of_others), "{of_kctl:#?} {of_others:#?}");
    let kind = |one: &String| one.split(' ').next().unwrap_or_default().to_owned();
    let kinds: BTreeSet<String> = of_kctl.iter().map(kind).collect();
    assert!(kinds.len() > 12, "{kinds:?}");

    // What others begin to set later is no change either.
    simulator.foreign_tags(&json!({"cost-centre": "4711", "audited": "yes"}));
    no_changes();

    // Labels come, change and go, and those of others stay where they are.
    let before = template_versions(&simulator);
    kctl.run(&["edit", "cluster", "--set", "spec.cloudLabels.Team=y"])
        .expect_success();
    changes();
    assert_eq!(tagged_resources(&simulator, "Team"), of_kctl);
    kctl.run(&["edit", "cluster", "--unset", "spec.cloudLabels.Team"])
        .expect_success();
    changes();
    assert_eq!(tagged_resources(&simulator, "Team"), BTreeSet::new());
    assert_eq!(tagged_resources(&simulator, "Owner"), of_kctl);
    kctl.run(&["edit", "cluster", "--unset", "spec.cloudLabels"])
        .expect_success();
    changes();
    assert_eq!(tagged_resources(&simulator, "Owner"), BTreeSet::new());
    assert_ne!(
        template_versions(&simulator),
        before,
        "instances get other tags"
    );
    for others in ["cost-centre", "audited"] {
        assert_eq!(tagged_resources(&simulator, others), of_others);
    }

    kctl.run(&["delete", "cluster", NAME, "--yes"])
        .expect_success();
    assert_eq!(simulator.list_resources(REGION), empty);
}

#[test]
fn a_tag_that_a_launch_template_itself_lacks_makes_no_new_version() {
    let simulator = Simulator::start_simulator();
    let kctl = made_cluster(&simulator, &["--cloud-labels", "Team=x"]);
    let before = (
        tagged_resources(&simulator, "Team"),
        template_versions(&simulator),
    );
    let untag = "
ec2 = boto('ec2')
ids = [t['LaunchTemplateId'] for t in ec2.describe_launch_templates()['LaunchTemplates']]
ec2.delete_tags(Resources=ids, Tags=[{'Key': 'Team'}])";
    simulator.run_python(REGION, untag);
    assert_eq!(kctl.run(&["update", "--exit-code"]).code, 10);
    kctl.run(&["update", "--yes"]).expect_success();
    assert_eq!(
        (
            tagged_resources(&simulator, "Team"),
            template_versions(&simulator)
        ),
        before
    );
    assert_eq!(kctl.run(&["update", "--exit-code"]).code, 0);
}

/// The Kubernetes version that a group's new instances get, and that of its launch template's newest version.
fn launched_versions(simulator: &Simulator, group: &str) -> String {
    let code = format!(
        "
text = boto('s3').get_object(Bucket='state', Key='clusters/{NAME}/igconfig/{group}/nodeupconfig.yaml')['Body'].read().decode()
print([line for line in text.splitlines() if line.startswith('kubernetesVersion:')][0].split()[1])"
    );
    simulator.run_python(REGION, &code)
}

#[test]
fn workers_get_a_newer_version_once_the_control_plane_runs_it() {
    const WORKERS: &str = "node/nodes-eu-west-1a";
    const CONTROL_PLANE: &str = "control-plane/control-plane-eu-west-1a";
    let (old, new) = ("1.35.7", "1.36.3");
    let simulator = Simulator::start_simulator();
    let kctl = made_cluster(&simulator, &["--kubernetes-version", old]);
    let versions = || [WORKERS, CONTROL_PLANE].map(|group| launched_versions(&simulator, group));
    assert_eq!(versions(), [old, old]);
    kctl.run(&[
        "edit",
        "cluster",
        "--set",
        &format!("spec.kubernetesVersion={new}"),
    ])
    .expect_success();
    let ran = kctl.run(&["update", "--yes"]);
    let note = format!("workers keep Kubernetes {old} until every control plane runs {new} (i-");
    assert!(ran.code == 0 && ran.err.contains(&note), "{}", ran.err);
    assert_eq!(versions(), [old, new]);
    let ran = kctl.run(&["update", "--exit-code"]);
    assert!(
        ran.code == 0 && ran.err.contains(&note),
        "{}{}",
        ran.out,
        ran.err
    );
    // A change of something else leaves that as it is.
    kctl.run(&["edit", "cluster", "--set", "spec.kubelet.maxPods=50"])
        .expect_success();
    kctl.run(&["update", "--yes"]).expect_success();
    assert_eq!(versions(), [old, new]);
    replace_instances(
        &simulator,
        &format!("control-plane-eu-west-1a.masters.{NAME}"),
    );
    let ran = kctl.run(&["update", "--exit-code"]);
    assert!(
        ran.code == 10 && !ran.err.contains(&note),
        "{}{}",
        ran.out,
        ran.err
    );
    kctl.run(&["update", "--yes"]).expect_success();
    assert_eq!(versions(), [new, new]);
    assert_eq!(kctl.run(&["update", "--exit-code"]).code, 0);
}

#[test]
fn workers_get_a_newer_version_at_once_where_the_user_says_so() {
    let simulator = Simulator::start_simulator();
    let kctl = made_cluster(&simulator, &["--kubernetes-version", "1.35.7"]);
    kctl.run(&["edit", "cluster", "--set", "spec.kubernetesVersion=1.36.3"])
        .expect_success();
    kctl.run(&[
        "update",
        "--plan-out",
        "at-once.plan",
        "--ignore-kubelet-version-skew",
    ])
    .expect_success();
    kctl.run(&["update", "--plan", "at-once.plan", "--yes"])
        .expect_success();
    assert_eq!(
        launched_versions(&simulator, "node/nodes-eu-west-1a"),
        "1.36.3"
    );
}

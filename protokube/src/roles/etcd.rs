//! The roles of the etcd clusters of which this instance runs a member.

use super::{MEMBER_PACE, new_role_log, spawn_supervised};
use crate::daemon::DaemonState;
use aws_client::ec2_query::Ec2QueryClient;
use etcd_member::api_manifests::find_encryption_config;
use etcd_member::backup::{BackupRole, SnapshotTaker};
use etcd_member::changes::{ChangesMemory, ChangesPace, ChangesRole};
use etcd_member::{
    CommandMemory, CommandRole, EtcdGateway, EtcdHttp, EtcdMember, EtcdPeer, MemberSettings,
    MemberVolume, StatusReporter, UpkeepMemory, UpkeepRole,
};
use etcd_store::{FormationStore, UpkeepClaims};
use node::components::{EtcdMemberNames, EtcdPorts, etcd_ports, etcd_quota};
use node::config::{EtcdCluster, etcd_members};
use protokube_role::log::RoleLog;
use protokube_role::pace::sleep_for;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use time::OffsetDateTime;
use tokio::task::JoinSet;

/// EC2 answers from copies that may be old for seconds (AWS: "Eventual consistency in the Amazon EC2 API").
const VOLUME_CONFIRMATION: Duration = Duration::from_mins(1);

/// An etcd cluster of which this instance's group runs a member.
pub(crate) struct LocalEtcd<'a> {
    daemon: &'a DaemonState,
    pub(crate) cluster: EtcdCluster,
    pub(crate) ports: EtcdPorts,
    names: EtcdMemberNames,
    /// Names of the members that the group may run; never empty.
    own: Vec<String>,
    /// Position among the etcd clusters of this instance.
    position: usize,
}

/// All etcd clusters of which this instance's group runs a member. Validation knows no names without ports.
pub(crate) fn find_local_etcd(daemon: &DaemonState) -> Vec<LocalEtcd<'_>> {
    let control_plane = daemon.config.control_plane.iter();
    let all = control_plane.flat_map(|control_plane| &control_plane.etcd);
    let own = all.filter_map(|etcd| {
        let own = etcd_members(&daemon.config, etcd);
        let ports = etcd_ports(&etcd.name)?;
        (!own.is_empty()).then_some((etcd, ports, own))
    });
    own.enumerate()
        .map(|(position, (etcd, ports, own))| LocalEtcd {
            daemon,
            cluster: etcd.clone(),
            ports,
            names: EtcdMemberNames::from_config(etcd, &daemon.config.cluster),
            own,
            position,
        })
        .collect()
}

/// Starts the roles of every etcd cluster, and the one that executes commands for all of them. Why they are apart: ADR 19.
pub(super) fn start_etcd_roles(set: &mut JoinSet<()>, daemon: &Arc<DaemonState>) {
    let all = find_local_etcd(daemon);
    let mut takers = BTreeMap::new();
    for etcd in &all {
        let member = Arc::new(etcd.build_member());
        spawn_supervised(
            set,
            etcd.new_member_log(),
            &member,
            async |role: Arc<EtcdMember<Ec2QueryClient, EtcdHttp, EtcdGateway>>| {
                role.run_member().await
            },
        );
        let status = Arc::new(etcd.build_status_role());
        let report = async |role: Arc<StatusReporter>| role.keep_status().await;
        spawn_supervised(set, etcd.new_log("status"), &status, report);
        let upkeep = Arc::new(etcd.build_upkeep_role());
        let keep = async |role: Arc<UpkeepRole<EtcdGateway>>| role.keep_up().await;
        spawn_supervised(set, etcd.new_log("upkeep"), &upkeep, keep);
        let taker = Arc::new(etcd.build_snapshot_taker(etcd.name()));
        takers.insert(etcd.name().to_owned(), Arc::clone(&taker));
        let backup = Arc::new(etcd.build_backup_role(taker));
        let keep = async |role: Arc<BackupRole<EtcdGateway>>| role.keep_backups().await;
        spawn_supervised(set, etcd.new_log("backup"), &backup, keep);
        let changes = Arc::new(etcd.build_changes_role());
        let keep = async |role: Arc<ChangesRole<EtcdGateway>>| role.keep_changes().await;
        spawn_supervised(set, etcd.new_log("changes"), &changes, keep);
    }
    let members = all
        .iter()
        .map(|etcd| (etcd.name().to_owned(), etcd.build_gateway()));
    let commands = Arc::new(CommandRole {
        store: daemon.store.clone(),
        instance: daemon.instance.clone(),
        members: members.collect(),
        snapshots: takers,
        role_log: new_role_log(daemon, "commands"),
        clock: OffsetDateTime::now_utc,
        sleep: sleep_for,
        memory: CommandMemory::default(),
        records: Arc::clone(&daemon.records),
    });
    let execute = async |role: Arc<CommandRole<EtcdGateway>>| role.execute_commands().await;
    spawn_supervised(set, new_role_log(daemon, "commands"), &commands, execute);
}

impl LocalEtcd<'_> {
    pub(crate) fn name(&self) -> &str {
        &self.cluster.name
    }

    pub(crate) fn open_formation(&self) -> FormationStore {
        FormationStore::new(&self.daemon.store, self.name())
    }

    pub(crate) fn build_settings(&self) -> MemberSettings {
        MemberSettings {
            config: Arc::clone(&self.daemon.config),
            etcd: self.cluster.clone(),
            first_device: self.position,
            instance: self.daemon.instance.clone(),
            zone: self.daemon.zone.clone(),
            pace: MEMBER_PACE,
            confirm_after: VOLUME_CONFIRMATION,
            token: etcd_member::new_token,
        }
    }

    /// What takes snapshots of the local member, in a folder of this name.
    pub(crate) fn build_snapshot_taker(&self, work: &str) -> SnapshotTaker<EtcdGateway> {
        let daemon = self.daemon;
        SnapshotTaker {
            cluster: daemon.config.cluster.clone(),
            incarnation: daemon.incarnation.clone(),
            etcd: self.name().to_owned(),
            work: work.to_owned(),
            instance: daemon.instance.clone(),
            // Kubelet's: while API servers emulate the minor before, it has that version.
            kubernetes_version: daemon.config.kubernetes_version.clone(),
            image: self.cluster.image.clone(),
            encryption_config: find_encryption_config(&daemon.config),
            members: self.cluster.members.len(),
            source: self.build_gateway(),
            host: daemon.host.clone(),
            store: daemon.store.clone(),
            signed: daemon.signed.clone(),
            clock: OffsetDateTime::now_utc,
            interval: MEMBER_PACE.quick,
            busy: tokio::sync::Mutex::default(),
        }
    }

    fn new_log(&self, role: &str) -> RoleLog {
        new_role_log(self.daemon, &format!("{role}-{}", self.name()))
    }

    /// The log of the member's role. It names the member if the group has only one.
    fn new_member_log(&self) -> RoleLog {
        let about = match &self.own[..] {
            [member] => format!("member {member}"),
            _ => String::new(),
        };
        RoleLog::for_role(format!("etcd-{}", self.name()))
            .recording_waits(&self.daemon.current_waits, &about)
    }

    /// The role of the member.
    fn build_member(&self) -> EtcdMember<Ec2QueryClient, EtcdHttp, EtcdGateway> {
        let daemon = self.daemon;
        let running = EtcdHttp {
            probe: daemon.probe.clone(),
            health: format!("http://127.0.0.1:{}", self.ports.health),
            peer: EtcdPeer {
                host: daemon.host.clone(),
                certificates: self.names.certificate_folder(),
                names: self.names.clone(),
                address: daemon.address,
                port: self.ports.peer,
            },
        };
        let member = EtcdMember::new(
            self.build_settings(),
            Arc::clone(&daemon.ec2),
            daemon.host.clone(),
            self.open_formation(),
            (running, self.build_gateway()),
            Arc::clone(&daemon.settled),
            self.new_member_log(),
        );
        member.waking_on(Arc::clone(&daemon.records))
    }

    /// The role that reports what the member says about itself.
    fn build_status_role(&self) -> StatusReporter {
        let daemon = self.daemon;
        StatusReporter {
            settings: self.build_settings(),
            host: daemon.host.clone(),
            store: daemon.store.clone(),
            current_waits: Arc::clone(&daemon.current_waits),
            gateway: self.build_gateway(),
            probe: daemon.probe.clone(),
            metrics: format!("http://127.0.0.1:{}/metrics", self.ports.health),
            role_log: self.new_log("status"),
            clock: OffsetDateTime::now_utc,
            sleep: sleep_for,
        }
    }

    /// Access to the client port of the local member.
    fn build_gateway(&self) -> EtcdGateway {
        // The certificate names every member that this group may run.
        let own = self.own.first().map(String::as_str).unwrap_or_default();
        EtcdGateway {
            host: self.daemon.host.clone(),
            certificates: self.names.certificate_folder(),
            name: self.names.member_host(own),
            address: self.daemon.address,
            port: self.ports.client,
            names: self.names.clone(),
            quota: etcd_quota(&self.cluster.environment),
        }
    }

    /// The role that keeps the database of the member small, and ends an alarm of a full one.
    fn build_upkeep_role(&self) -> UpkeepRole<EtcdGateway> {
        let daemon = self.daemon;
        UpkeepRole {
            volume: MemberVolume {
                settings: self.build_settings(),
                host: daemon.host.clone(),
            },
            member: self.build_gateway(),
            formation: self.open_formation(),
            claims: UpkeepClaims {
                store: daemon.store.clone(),
                etcd: self.name().to_owned(),
                instance: daemon.instance.clone(),
                clock: OffsetDateTime::now_utc,
            },
            role_log: self.new_log("upkeep"),
            sleep: sleep_for,
            memory: UpkeepMemory::default(),
        }
    }

    /// The role that takes snapshots when they are due.
    fn build_backup_role(&self, taker: Arc<SnapshotTaker<EtcdGateway>>) -> BackupRole<EtcdGateway> {
        BackupRole {
            taker,
            role_log: self.new_log("backup"),
            observed: Arc::clone(&self.daemon.backups),
            sleep: sleep_for,
        }
    }

    /// The role that stores the changes between snapshots.
    fn build_changes_role(&self) -> ChangesRole<EtcdGateway> {
        let daemon = self.daemon;
        ChangesRole {
            cluster: daemon.config.cluster.clone(),
            incarnation: daemon.incarnation.clone(),
            etcd: self.name().to_owned(),
            instance: daemon.instance.clone(),
            source: self.build_gateway(),
            store: daemon.store.clone(),
            signed: daemon.signed.clone(),
            role_log: self.new_log("changes"),
            clock: OffsetDateTime::now_utc,
            pace: ChangesPace::default(),
            memory: ChangesMemory::default(),
        }
    }
}

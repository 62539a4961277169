#!/bin/sh
# A Kubernetes node by hand, as user data: no agent, every step in sight. Variables come before it:
#   ROLE        control-plane or worker
#   API         the control plane's private address
#   TOKEN       what kubelets of workers prove themselves with until they have a certificate
#   CA          the cluster's authority, PEM in base64; control planes have CA_KEY too
#   PODS        addresses of this node's pods; CLUSTER_PODS those of all
#   CNI_URL CONTAINERD_URL KUBELET_URL RUNC_URL, and images: PAUSE ETCD APISERVER CONTROLLERS SCHEDULER
set -eu
begun=$(date +%s)
say() { echo "by-hand $(($(date +%s) - begun)) s: $*"; }
here=/etc/kubernetes
pki=$here/pki
services=100.64.0.0/13

session=$(curl -sSf -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 300' http://169.254.169.254/latest/api/token)
metadata() { curl -sSf -H "X-aws-ec2-metadata-token: $session" "http://169.254.169.254/latest/meta-data/$1"; }
address=$(metadata local-ipv4)
name=$(metadata local-hostname)
say "$ROLE $name $address"

# The kernel, as Kubernetes wants it.
modprobe -a overlay br_netfilter
sysctl -qw net.ipv4.ip_forward=1 net.bridge.bridge-nf-call-iptables=1 vm.overcommit_memory=1 kernel.panic=10 kernel.panic_on_oops=1

# Programs, under the names and hashes of their makers' sites.
fetch() {
    curl -sSfL --retry 5 --retry-connrefused -o "$2" "$1"
    echo "$(curl -sSfL "$1.sha256")  $2" | sha256sum -c --quiet
}
mkdir -p /opt/cni/bin /etc/cni/net.d /etc/containerd $here/manifests $pki /var/lib/kubelet
fetch "$CONTAINERD_URL" /tmp/containerd.tgz
tar -C /usr/local -xzf /tmp/containerd.tgz
fetch "$CNI_URL" /tmp/cni.tgz
tar -C /opt/cni/bin -xzf /tmp/cni.tgz
fetch "$RUNC_URL" /usr/local/sbin/runc
fetch "$KUBELET_URL" /usr/local/bin/kubelet
chmod 755 /usr/local/sbin/runc /usr/local/bin/kubelet
rm /tmp/containerd.tgz /tmp/cni.tgz
say "downloaded"

# containerd. Where no process may lower its oom_score_adj, containers may not ask for it.
cat >/etc/containerd/config.toml <<EOF
version = 3
[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = "$PAUSE"
[plugins."io.containerd.cri.v1.runtime"]
restrict_oom_score_adj = true
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
runtime_type = "io.containerd.runc.v2"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
BinaryName = "/usr/local/sbin/runc"
SystemdCgroup = true
EOF
cat >/etc/systemd/system/containerd.service <<'EOF'
[Unit]
After=network-online.target
[Service]
Type=notify
ExecStart=/usr/local/bin/containerd
Delegate=yes
KillMode=process
Restart=always
LimitNOFILE=infinity
EOF

# Pods' network: a bridge, and the VPC's routes between nodes. What leaves the cluster has the node's address.
cat >/etc/cni/net.d/10-by-hand.conflist <<EOF
{"cniVersion": "1.0.0", "name": "by-hand", "plugins": [
  {"type": "bridge", "bridge": "cni0", "isGateway": true, "hairpinMode": true,
   "ipam": {"type": "host-local", "ranges": [[{"subnet": "$PODS"}]], "routes": [{"dst": "0.0.0.0/0"}]}},
  {"type": "portmap", "capabilities": {"portMappings": true}}]}
EOF
iptables -t nat -A POSTROUTING -s "$PODS" ! -d "$CLUSTER_PODS" -j MASQUERADE

echo "$CA" | base64 -d >$pki/ca.crt
kubeconfig() { # FILE SERVER USER
    cat >"$1" <<EOF
apiVersion: v1
kind: Config
clusters: [{name: by-hand, cluster: {server: "https://$2:6443", certificate-authority: $pki/ca.crt}}]
users: [{name: own, user: $3}]
contexts: [{name: by-hand, context: {cluster: by-hand, user: own}}]
current-context: by-hand
EOF
}

certificate() { # NAME SUBJECT USAGE [ALTERNATIVES]
    openssl req -new -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$pki/$1.key" -out "$pki/$1.csr" -subj "$2" 2>/dev/null
    {
        echo "keyUsage=critical,digitalSignature"
        echo "extendedKeyUsage=$3"
        [ -z "${4:-}" ] || echo "subjectAltName=$4"
    } >"$pki/$1.ext"
    openssl x509 -req -in "$pki/$1.csr" -CA $pki/ca.crt -CAkey $pki/ca.key -CAcreateserial -days 30 -extfile "$pki/$1.ext" -out "$pki/$1.crt" 2>/dev/null
}

static_pod() { # NAME IMAGE COMMAND...
    pod=$1 image=$2
    shift 2
    {
        cat <<EOF
apiVersion: v1
kind: Pod
metadata: {name: $pod, namespace: kube-system, labels: {component: $pod}}
spec:
  hostNetwork: true
  priorityClassName: system-node-critical
  containers:
  - name: $pod
    image: $image
    command:
EOF
        printf '    - "%s"\n' "$@"
        cat <<EOF
    volumeMounts: [{name: pki, mountPath: $here, readOnly: true}, {name: data, mountPath: /var/lib/etcd}]
  volumes:
  - {name: pki, hostPath: {path: $here}}
  - {name: data, hostPath: {path: /mnt/etcd/data}}
EOF
    } >"$here/manifests/$pod.yaml"
}

control_plane() {
    echo "$CA_KEY" | base64 -d >$pki/ca.key
    chmod 600 $pki/ca.key
    public=$(metadata public-ipv4)
    certificate apiserver /CN=kube-apiserver serverAuth \
        "DNS:kubernetes,DNS:kubernetes.default,DNS:kubernetes.default.svc,IP:100.64.0.1,IP:127.0.0.1,IP:$address,IP:$public"
    certificate apiserver-kubelet /O=system:masters/CN=kube-apiserver clientAuth
    certificate controllers /CN=system:kube-controller-manager clientAuth
    certificate scheduler /CN=system:kube-scheduler clientAuth
    certificate admin /O=system:masters/CN=admin clientAuth
    certificate kubelet "/O=system:nodes/CN=system:node:$name" clientAuth
    openssl genrsa -out $pki/accounts.key 2048 2>/dev/null
    echo "$TOKEN,bootstrap,bootstrap,system:bootstrappers" >$pki/tokens.csv
    for one in controllers scheduler admin kubelet; do
        kubeconfig $here/$one.kubeconfig 127.0.0.1 "{client-certificate: $pki/$one.crt, client-key: $pki/$one.key}"
    done

    # etcd's data is on a volume, which EC2 attaches when it is asked.
    volume=
    while [ ! -e "$volume" ]; do
        sleep 0.5
        volume=$(find /dev/disk/by-id -name 'nvme-Amazon_Elastic_Block_Store_vol*' 2>/dev/null | head -n 1)
    done
    blkid "$volume" >/dev/null || mkfs.ext4 -q "$volume"
    mkdir -p /mnt/etcd
    mount "$volume" /mnt/etcd
    mkdir -p /mnt/etcd/data
    chmod 700 /mnt/etcd/data
    say "etcd's volume is mounted"

    static_pod etcd "$ETCD" /usr/local/bin/etcd --name=by-hand --data-dir=/var/lib/etcd \
        --listen-client-urls=http://127.0.0.1:2379 --advertise-client-urls=http://127.0.0.1:2379 \
        --listen-peer-urls=http://127.0.0.1:2380 --initial-advertise-peer-urls=http://127.0.0.1:2380 \
        --initial-cluster=by-hand=http://127.0.0.1:2380
    static_pod kube-apiserver "$APISERVER" /usr/local/bin/kube-apiserver \
        --etcd-servers=http://127.0.0.1:2379 --advertise-address="$address" --secure-port=6443 \
        --client-ca-file=$pki/ca.crt --tls-cert-file=$pki/apiserver.crt --tls-private-key-file=$pki/apiserver.key \
        --kubelet-client-certificate=$pki/apiserver-kubelet.crt --kubelet-client-key=$pki/apiserver-kubelet.key \
        --kubelet-preferred-address-types=InternalIP --token-auth-file=$pki/tokens.csv \
        --service-account-key-file=$pki/accounts.key --service-account-signing-key-file=$pki/accounts.key \
        --service-account-issuer=https://kubernetes.default.svc --service-cluster-ip-range=$services \
        --authorization-mode=Node,RBAC --enable-admission-plugins=NodeRestriction --allow-privileged=true
    kubeconfig_of=$here/controllers.kubeconfig
    static_pod kube-controller-manager "$CONTROLLERS" /usr/local/bin/kube-controller-manager \
        --kubeconfig=$kubeconfig_of --authentication-kubeconfig=$kubeconfig_of --authorization-kubeconfig=$kubeconfig_of \
        --cluster-signing-cert-file=$pki/ca.crt --cluster-signing-key-file=$pki/ca.key --root-ca-file=$pki/ca.crt \
        --service-account-private-key-file=$pki/accounts.key --use-service-account-credentials \
        --service-cluster-ip-range=$services --cloud-provider=external
    kubeconfig_of=$here/scheduler.kubeconfig
    static_pod kube-scheduler "$SCHEDULER" /usr/local/bin/kube-scheduler \
        --kubeconfig=$kubeconfig_of --authentication-kubeconfig=$kubeconfig_of --authorization-kubeconfig=$kubeconfig_of
}

worker() {
    # A kubelet that is refused asks again ever later.
    until curl -sS --max-time 5 --cacert $pki/ca.crt -o /dev/null "https://$API:6443/readyz" 2>/dev/null; do
        sleep 0.5
    done
    say "the API answers"
    kubeconfig $here/bootstrap.kubeconfig "$API" "{token: $TOKEN}"
}

case $ROLE in
control-plane) control_plane ;;
worker) worker ;;
*) say "no such role: $ROLE" && exit 2 ;;
esac

cat >$here/kubelet.yaml <<EOF
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
authentication: {anonymous: {enabled: false}, webhook: {enabled: true}, x509: {clientCAFile: $pki/ca.crt}}
authorization: {mode: Webhook}
cgroupDriver: systemd
failCgroupV1: false
failSwapOn: false
protectKernelDefaults: true
rotateCertificates: true
clusterDomain: cluster.local
clusterDNS: [100.64.0.10]
containerRuntimeEndpoint: unix:///run/containerd/containerd.sock
staticPodPath: $here/manifests
resolvConf: /run/systemd/resolve/resolv.conf
evictionHard: {memory.available: 100Mi, nodefs.available: 1%, imagefs.available: 1%, nodefs.inodesFree: 1%}
EOF
cat >/etc/systemd/system/kubelet.service <<EOF
[Unit]
After=containerd.service
[Service]
ExecStart=/usr/local/bin/kubelet --config=$here/kubelet.yaml --kubeconfig=$here/kubelet.kubeconfig \\
    --bootstrap-kubeconfig=$here/bootstrap.kubeconfig --cloud-provider=external --hostname-override=$name --node-ip=$address
Restart=always
RestartSec=2
Delegate=yes
EOF
systemctl daemon-reload
systemctl start containerd
systemctl start kubelet
say "kubelet is started"

#!/bin/sh
# Lists modes and owners of the files that the CIS Kubernetes Benchmark names, and what three settings in files are. kubelet serves the
# list to administrators: /api/v1/nodes/NODE/proxy/logs/kctl-node-files.txt. An argument is a folder in the place of /, for tests.
set -eu
umask 077
root=${1:-}
list=$root/var/log/kctl-node-files.txt
pki=$root/srv/kubernetes

look() {
    what=$1
    shift
    for path in "$@"; do
        stat -L -c "file $what %a %U:%G %n" "$path" 2>/dev/null || echo "absent $what $path"
    done
}

{
    echo "time $(date -u +%Y-%m-%dT%H:%M:%SZ)"
    for pod in kube-apiserver kube-controller-manager kube-scheduler; do
        look "manifest-$pod" "$root/etc/kubernetes/manifests/$pod.manifest"
    done
    look manifest-etcd "$root"/etc/kubernetes/manifests/etcd-*.manifest
    look cni "$root"/etc/cni/net.d/*
    look etcd-data "$root"/mnt/master-*/var/*/data
    look admin-kubeconfig "$root/etc/kubernetes/admin.conf" "$root/etc/kubernetes/super-admin.conf"
    for component in kube-controller-manager kube-proxy kube-scheduler kubelet; do
        look "kubeconfig-$component" "$root/var/lib/$component/kubeconfig"
    done
    look kubelet-unit "$root/etc/systemd/system/kubelet.service"
    look kubelet-config "$root/var/lib/kubelet/kubelet.conf"
    look client-ca "$pki/ca.crt"
    find -L "$pki" -printf 'file pki %m %u:%g %p\n'
    find -L "$pki" -name '*.crt' -printf 'file pki-certificate %m %u:%g %p\n'
    find -L "$pki" -name '*.key' -printf 'file pki-key %m %u:%g %p\n'

    scheduler=$root/var/lib/kube-scheduler/config.yaml
    if [ -e "$scheduler" ]; then
        echo "value scheduler-profiling $(sed -n 's/^enableProfiling: //p' "$scheduler")"
    fi
    # Names of providers only, and no part of a key.
    encryption=$pki/kube-apiserver/encryptionconfig.yaml
    if [ -e "$encryption" ]; then
        sed -n '/providers:/ { n; s/^ *- *\(aescbc\|aesgcm\|identity\|kms\|secretbox\):.*/value encryption-provider \1/p; }' "$encryption"
    fi
    for authority in "$pki"/etcd*/clients-ca.crt; do
        if [ -e "$authority" ]; then
            if [ "$(sha256sum <"$authority")" = "$(sha256sum <"$pki/ca.crt")" ]; then
                echo "value etcd-authority kubernetes-ca"
            else
                echo "value etcd-authority own"
            fi
        fi
    done
    echo end
} >"$list.new"
mv "$list.new" "$list"

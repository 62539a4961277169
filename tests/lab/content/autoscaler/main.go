// A stand-in for cluster-proportional-autoscaler: its linear mode, with its flags. The real one's
// module is not served by the module proxy.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	core "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
)

var version = "unknown"

type options struct {
	namespace, configMap, target, defaults, kubeconfig, nodeLabels string
	period                                                         time.Duration
}

func main() {
	o := options{}
	flag.StringVar(&o.namespace, "namespace", os.Getenv("MY_NAMESPACE"), "namespace of the target and the ConfigMap")
	flag.StringVar(&o.configMap, "configmap", "", "ConfigMap with the parameters")
	flag.StringVar(&o.target, "target", "", "what is scaled: Deployment/NAME")
	flag.StringVar(&o.defaults, "default-params", "", "parameters to create the ConfigMap with, JSON")
	flag.StringVar(&o.kubeconfig, "kubeconfig", "", "kubeconfig; not needed in a pod")
	flag.StringVar(&o.nodeLabels, "nodelabels", "", "count only Nodes with these labels")
	seconds := flag.Int("poll-period-seconds", 10, "seconds between two looks")
	said := flag.Bool("version", false, "print the version and end")
	flag.Bool("logtostderr", true, "accepted: the log always goes there")
	flag.Int("v", 0, "accepted and without effect")
	flag.Parse()
	if *said {
		fmt.Println("cluster-proportional-autoscaler", version, "(stand-in of the kctl lab)")
		return
	}
	o.period = time.Duration(*seconds) * time.Second
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := run(ctx, o); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, o options) error {
	kind, name, found := strings.Cut(o.target, "/")
	if !found || !strings.EqualFold(kind, "deployment") || o.namespace == "" || o.configMap == "" {
		return errors.New("needed: --namespace, --configmap, and --target=Deployment/NAME (this stand-in scales Deployments only)")
	}
	// Without a kubeconfig this is the pod's own.
	config, err := clientcmd.BuildConfigFromFlags("", o.kubeconfig)
	if err != nil {
		return fmt.Errorf("no way to the API: %w", err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	for {
		if err := scale(ctx, client, o, name); err != nil && ctx.Err() == nil {
			log.Print(err)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(o.period):
		}
	}
}

// scale looks once, and changes the target if it has another number of replicas.
func scale(ctx context.Context, client kubernetes.Interface, o options, name string) error {
	linear, err := parameters(ctx, client, o)
	if err != nil {
		return err
	}
	nodes, err := client.CoreV1().Nodes().List(ctx, meta.ListOptions{LabelSelector: o.nodeLabels})
	if err != nil {
		return fmt.Errorf("cannot list Nodes: %w", err)
	}
	count, cores := 0, int64(0)
	for _, node := range nodes.Items {
		if linear.IncludeUnschedulableNodes || !node.Spec.Unschedulable {
			count++
			cores += node.Status.Allocatable.Cpu().MilliValue()
		}
	}
	want := linear.replicas(count, float64(cores)/1000)
	deployments := client.AppsV1().Deployments(o.namespace)
	now, err := deployments.GetScale(ctx, name, meta.GetOptions{})
	if err != nil {
		return fmt.Errorf("cannot read the scale of %s: %w", o.target, err)
	}
	if now.Spec.Replicas == want {
		return nil
	}
	log.Printf("%d nodes, %.1f cores: scaling %s from %d to %d", count, float64(cores)/1000, o.target, now.Spec.Replicas, want)
	now.Spec.Replicas = want
	_, err = deployments.UpdateScale(ctx, name, now, meta.UpdateOptions{})
	return err
}

// parameters reads the ConfigMap, made from the defaults first if there is none.
func parameters(ctx context.Context, client kubernetes.Interface, o options) (linear, error) {
	maps := client.CoreV1().ConfigMaps(o.namespace)
	found, err := maps.Get(ctx, o.configMap, meta.GetOptions{})
	if apierrors.IsNotFound(err) && o.defaults != "" {
		modes := map[string]json.RawMessage{}
		if err := json.Unmarshal([]byte(o.defaults), &modes); err != nil {
			return linear{}, fmt.Errorf("--default-params: %w", err)
		}
		made := &core.ConfigMap{ObjectMeta: meta.ObjectMeta{Name: o.configMap, Namespace: o.namespace}, Data: map[string]string{}}
		for mode, parameters := range modes {
			made.Data[mode] = string(parameters)
		}
		found, err = maps.Create(ctx, made, meta.CreateOptions{})
	}
	if err != nil {
		return linear{}, fmt.Errorf("no ConfigMap %s: %w", types.NamespacedName{Namespace: o.namespace, Name: o.configMap}, err)
	}
	text, there := found.Data["linear"]
	if !there {
		return linear{}, errors.New("this stand-in knows the mode linear only, and the ConfigMap has none")
	}
	read := linear{}
	if err := json.Unmarshal([]byte(text), &read); err != nil {
		return linear{}, fmt.Errorf("linear in the ConfigMap: %w", err)
	}
	return read, nil
}

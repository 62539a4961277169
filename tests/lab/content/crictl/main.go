// A stand-in for crictl: its common commands over Kubernetes' CRI client. The real one's module is
// not served by the module proxy. It says what it is in `--version`.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"go.opentelemetry.io/otel/trace/noop"
	cri "k8s.io/cri-api/pkg/apis"
	client "k8s.io/cri-client/pkg"
	"sigs.k8s.io/yaml"
)

var version = "unknown"

const (
	defaultConfig   = "/etc/crictl.yaml"
	defaultEndpoint = "unix:///run/containerd/containerd.sock"
)

// settings are the flags of the whole program; the file has the same names as crictl's.
type settings struct {
	config          string
	RuntimeEndpoint string `json:"runtime-endpoint"`
	ImageEndpoint   string `json:"image-endpoint"`
	TimeoutSeconds  int    `json:"timeout"`
	Debug           bool   `json:"debug"`
	timeout         time.Duration
}

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if err := root().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "crictl (kctl lab stand-in):", err)
		os.Exit(1)
	}
}

func root() *cobra.Command {
	s := &settings{}
	command := &cobra.Command{
		Use:           "crictl",
		Short:         "A stand-in for crictl, made for kctl's lab",
		Version:       version + " (stand-in of the kctl lab over k8s.io/cri-client)",
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRunE: func(command *cobra.Command, _ []string) error {
			return s.complete(command)
		},
	}
	command.SetVersionTemplate("crictl version {{.Version}}\n")
	flags := command.PersistentFlags()
	flags.StringVarP(&s.config, "config", "c", defaultConfig, "configuration file")
	flags.StringVarP(&s.RuntimeEndpoint, "runtime-endpoint", "r", "", "endpoint of the runtime service")
	flags.StringVarP(&s.ImageEndpoint, "image-endpoint", "i", "", "endpoint of the image service")
	flags.DurationVarP(&s.timeout, "timeout", "t", 2*time.Second, "timeout of connecting to the server")
	flags.BoolVarP(&s.Debug, "debug", "D", false, "accepted and without effect")
	command.AddCommand(ps(s), pods(s), images(s), inspect(s), inspectPod(s), inspectImage(s), logs(s),
		removeImage(s), stopPod(s), removePod(s), stop(s), remove(s), pull(s), info(s), runtimeVersion(s))
	return command
}

// complete fills what no flag said from the environment, the file, and the defaults, in this order.
func (s *settings) complete(command *cobra.Command) error {
	file := settings{}
	text, err := os.ReadFile(s.config)
	if err != nil && (command.Flags().Changed("config") || !errors.Is(err, os.ErrNotExist)) {
		return fmt.Errorf("cannot read the configuration: %w", err)
	}
	if err := yaml.Unmarshal(text, &file); err != nil {
		return fmt.Errorf("%s: %w", s.config, err)
	}
	s.RuntimeEndpoint = first(s.RuntimeEndpoint, os.Getenv("CONTAINER_RUNTIME_ENDPOINT"), file.RuntimeEndpoint, defaultEndpoint)
	s.ImageEndpoint = first(s.ImageEndpoint, os.Getenv("IMAGE_SERVICE_ENDPOINT"), file.ImageEndpoint, s.RuntimeEndpoint)
	if !command.Flags().Changed("timeout") && file.TimeoutSeconds > 0 {
		s.timeout = time.Duration(file.TimeoutSeconds) * time.Second
	}
	return nil
}

func first(values ...string) string {
	for _, value := range values {
		if value != "" {
			return value
		}
	}
	return ""
}

func (s *settings) runtime(ctx context.Context) (cri.RuntimeService, error) {
	service, err := client.NewRemoteRuntimeService(ctx, endpoint(s.RuntimeEndpoint), s.timeout, noop.NewTracerProvider(), false)
	if err != nil {
		return nil, fmt.Errorf("no runtime at %s: %w", s.RuntimeEndpoint, err)
	}
	return service, nil
}

func (s *settings) image(ctx context.Context) (cri.ImageManagerService, error) {
	service, err := client.NewRemoteImageService(ctx, endpoint(s.ImageEndpoint), s.timeout, noop.NewTracerProvider(), false)
	if err != nil {
		return nil, fmt.Errorf("no image service at %s: %w", s.ImageEndpoint, err)
	}
	return service, nil
}

// endpoint completes a bare path, which crictl accepts too.
func endpoint(text string) string {
	if strings.HasPrefix(text, "/") {
		return "unix://" + text
	}
	return text
}

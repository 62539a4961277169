package main

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func ps(s *settings) *cobra.Command {
	var all, quiet, whole bool
	var name, pod, state, output string
	command := &cobra.Command{Use: "ps", Aliases: []string{"containers"}, Short: "List containers", Args: cobra.NoArgs}
	flags := command.Flags()
	flags.BoolVarP(&all, "all", "a", false, "all containers, not only running ones")
	flags.BoolVarP(&quiet, "quiet", "q", false, "only ids")
	flags.BoolVar(&whole, "no-trunc", false, "whole ids")
	flags.StringVar(&name, "name", "", "only those whose name matches this expression")
	flags.StringVarP(&pod, "pod", "p", "", "only those of this pod id")
	flags.StringVarP(&state, "state", "s", "", "created, running or exited")
	flags.StringVarP(&output, "output", "o", "", "json or yaml")
	command.RunE = func(command *cobra.Command, _ []string) error {
		containers, err := containers(command.Context(), s, all, name, pod, state)
		if err != nil {
			return err
		}
		w := command.OutOrStdout()
		switch {
		case quiet:
			for _, container := range containers {
				fmt.Fprintln(w, container.Id)
			}
			return nil
		case output != "" && output != "table":
			return list(w, output, "containers", containers)
		}
		rows := [][]string{{"CONTAINER", "IMAGE", "CREATED", "STATE", "NAME", "ATTEMPT", "POD ID", "POD", "NAMESPACE"}}
		for _, container := range containers {
			rows = append(rows, []string{
				short(container.Id, whole), short(container.Image.GetImage(), whole), ago(container.CreatedAt),
				lower(container.State.String(), "CONTAINER_"), container.Metadata.GetName(),
				fmt.Sprint(container.Metadata.GetAttempt()), short(container.PodSandboxId, whole),
				container.Labels["io.kubernetes.pod.name"], container.Labels["io.kubernetes.pod.namespace"],
			})
		}
		return table(w, rows)
	}
	return command
}

// containers finds them, newest first.
func containers(ctx context.Context, s *settings, all bool, name, pod, state string) ([]*runtime.Container, error) {
	filter := &runtime.ContainerFilter{PodSandboxId: pod}
	if state == "" && !all {
		state = "running"
	}
	if state != "" {
		value, known := runtime.ContainerState_value["CONTAINER_"+strings.ToUpper(state)]
		if !known {
			return nil, fmt.Errorf("unknown state %q: created, running, exited or unknown", state)
		}
		filter.State = &runtime.ContainerStateValue{State: runtime.ContainerState(value)}
	}
	matches, err := regexp.Compile(name)
	if err != nil {
		return nil, fmt.Errorf("--name: %w", err)
	}
	service, err := s.runtime(ctx)
	if err != nil {
		return nil, err
	}
	found, err := service.ListContainers(ctx, filter)
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(c *runtime.Container) bool { return !matches.MatchString(c.Metadata.GetName()) })
	slices.SortFunc(found, func(a, b *runtime.Container) int { return int(b.CreatedAt - a.CreatedAt) })
	return found, nil
}

func pods(s *settings) *cobra.Command {
	var quiet, whole bool
	var name, namespace, state, output string
	var labels map[string]string
	command := &cobra.Command{Use: "pods", Short: "List pods", Args: cobra.NoArgs}
	flags := command.Flags()
	flags.BoolVarP(&quiet, "quiet", "q", false, "only ids")
	flags.BoolVar(&whole, "no-trunc", false, "whole ids")
	flags.StringVar(&name, "name", "", "only those whose name matches this expression")
	flags.StringVar(&namespace, "namespace", "", "only those whose namespace matches this expression")
	flags.StringVarP(&state, "state", "s", "", "ready or notready")
	flags.StringToStringVar(&labels, "label", nil, "only those with these labels, KEY=VALUE")
	flags.StringVarP(&output, "output", "o", "", "json or yaml")
	command.RunE = func(command *cobra.Command, _ []string) error {
		pods, err := sandboxes(command.Context(), s, name, namespace, state, labels)
		if err != nil {
			return err
		}
		w := command.OutOrStdout()
		switch {
		case quiet:
			for _, pod := range pods {
				fmt.Fprintln(w, pod.Id)
			}
			return nil
		case output != "" && output != "table":
			return list(w, output, "items", pods)
		}
		rows := [][]string{{"POD ID", "CREATED", "STATE", "NAME", "NAMESPACE", "ATTEMPT", "RUNTIME"}}
		for _, pod := range pods {
			runtime := pod.RuntimeHandler
			if runtime == "" {
				runtime = "(default)"
			}
			rows = append(rows, []string{
				short(pod.Id, whole), ago(pod.CreatedAt), lower(pod.State.String(), "SANDBOX_"), pod.Metadata.GetName(),
				pod.Metadata.GetNamespace(), fmt.Sprint(pod.Metadata.GetAttempt()), runtime,
			})
		}
		return table(w, rows)
	}
	return command
}

// sandboxes finds pods, newest first.
func sandboxes(ctx context.Context, s *settings, name, namespace, state string, labels map[string]string) ([]*runtime.PodSandbox, error) {
	filter := &runtime.PodSandboxFilter{LabelSelector: labels}
	if state != "" {
		value, known := runtime.PodSandboxState_value["SANDBOX_"+strings.ToUpper(state)]
		if !known {
			return nil, fmt.Errorf("unknown state %q: ready or notready", state)
		}
		filter.State = &runtime.PodSandboxStateValue{State: runtime.PodSandboxState(value)}
	}
	names, err := regexp.Compile(name)
	if err != nil {
		return nil, fmt.Errorf("--name: %w", err)
	}
	namespaces, err := regexp.Compile(namespace)
	if err != nil {
		return nil, fmt.Errorf("--namespace: %w", err)
	}
	service, err := s.runtime(ctx)
	if err != nil {
		return nil, err
	}
	found, err := service.ListPodSandbox(ctx, filter)
	if err != nil {
		return nil, err
	}
	found = slices.DeleteFunc(found, func(p *runtime.PodSandbox) bool {
		return !names.MatchString(p.Metadata.GetName()) || !namespaces.MatchString(p.Metadata.GetNamespace())
	})
	slices.SortFunc(found, func(a, b *runtime.PodSandbox) int { return int(b.CreatedAt - a.CreatedAt) })
	return found, nil
}

func images(s *settings) *cobra.Command {
	var quiet, whole bool
	var output string
	command := &cobra.Command{Use: "images [REPOSITORY[:TAG]]", Aliases: []string{"image", "img"}, Short: "List images", Args: cobra.MaximumNArgs(1)}
	flags := command.Flags()
	flags.BoolVarP(&quiet, "quiet", "q", false, "only ids")
	flags.BoolVar(&whole, "no-trunc", false, "whole ids")
	flags.StringVarP(&output, "output", "o", "", "json or yaml")
	command.RunE = func(command *cobra.Command, arguments []string) error {
		service, err := s.image(command.Context())
		if err != nil {
			return err
		}
		filter := &runtime.ImageFilter{}
		if len(arguments) == 1 {
			filter.Image = &runtime.ImageSpec{Image: arguments[0]}
		}
		images, err := service.ListImages(command.Context(), filter)
		if err != nil {
			return err
		}
		w := command.OutOrStdout()
		switch {
		case quiet:
			for _, image := range images {
				fmt.Fprintln(w, image.Id)
			}
			return nil
		case output != "" && output != "table":
			return list(w, output, "images", images)
		}
		return table(w, imageRows(images, whole))
	}
	return command
}

func imageRows(images []*runtime.Image, whole bool) [][]string {
	rows := [][]string{}
	for _, image := range images {
		size := fmt.Sprintf("%.3gMB", float64(image.Size)/1e6)
		for _, tag := range image.RepoTags {
			at := strings.LastIndex(tag, ":")
			rows = append(rows, []string{tag[:max(at, 0)], tag[at+1:], short(image.Id, whole), size})
		}
		if len(image.RepoTags) == 0 {
			rows = append(rows, []string{strings.Join(image.RepoDigests, " "), "<none>", short(image.Id, whole), size})
		}
	}
	slices.SortFunc(rows, func(a, b []string) int { return slices.Compare(a, b) })
	return append([][]string{{"IMAGE", "TAG", "IMAGE ID", "SIZE"}}, rows...)
}

func lower(state, prefix string) string {
	state = strings.ToLower(strings.TrimPrefix(state, prefix))
	return strings.ToUpper(state[:1]) + state[1:]
}

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"sigs.k8s.io/yaml"
)

const shortID = 13

func short(id string, whole bool) string {
	id = strings.TrimPrefix(id, "sha256:")
	if whole || len(id) <= shortID {
		return id
	}
	return id[:shortID]
}

// ago says an age as crictl does: in its largest unit.
func ago(nanoseconds int64) string {
	age := time.Since(time.Unix(0, nanoseconds))
	units := []struct {
		name string
		size time.Duration
	}{{"days", 24 * time.Hour}, {"hours", time.Hour}, {"minutes", time.Minute}}
	for _, unit := range units {
		if age >= 2*unit.size {
			return fmt.Sprintf("%d %s ago", age/unit.size, unit.name)
		}
	}
	return fmt.Sprintf("%d seconds ago", age/time.Second)
}

func table(w io.Writer, rows [][]string) error {
	lines := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(lines, strings.Join(row, "\t"))
	}
	return lines.Flush()
}

// object prints a message of the CRI with what the runtime adds in its map of JSON texts.
func object(w io.Writer, format string, message proto.Message, extra map[string]string) error {
	text, err := protojson.MarshalOptions{EmitUnpopulated: true}.Marshal(message)
	if err != nil {
		return err
	}
	whole := map[string]any{}
	if err := json.Unmarshal(text, &whole); err != nil {
		return err
	}
	for key, value := range extra {
		var parsed any
		if json.Unmarshal([]byte(value), &parsed) != nil {
			parsed = value
		}
		whole[key] = parsed
	}
	return encode(w, format, whole)
}

// list prints messages under one key, as crictl does.
func list[M proto.Message](w io.Writer, format, key string, messages []M) error {
	items := make([]any, 0, len(messages))
	for _, message := range messages {
		text, err := protojson.MarshalOptions{EmitUnpopulated: true}.Marshal(message)
		if err != nil {
			return err
		}
		var item any
		if err := json.Unmarshal(text, &item); err != nil {
			return err
		}
		items = append(items, item)
	}
	return encode(w, format, map[string]any{key: items})
}

func encode(w io.Writer, format string, whole any) error {
	switch format {
	case "json":
		encoder := json.NewEncoder(w)
		encoder.SetIndent("", "  ")
		return encoder.Encode(whole)
	case "yaml":
		text, err := yaml.Marshal(whole)
		if err != nil {
			return err
		}
		_, err = w.Write(text)
		return err
	}
	return fmt.Errorf("unknown output format %q: json or yaml", format)
}

// A server for tests in pods: says which pod answered and whom it saw, by HTTP and by UDP, fetches a URL from inside the
// cluster, once or all the time, resolves a name. One static binary: no libc, so names resolve without NSS.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

var client = http.Client{Timeout: 10 * time.Second}

const (
	// Time between two calls of -call, and their limit. With two seconds, one call of some 28,000 failed on a machine with
	// two cores and a load of 20, where a server may have to wait that long for a core.
	callInterval = 200 * time.Millisecond
	callTimeout  = 5 * time.Second
	// How long -call stays after SIGTERM, so that whoever reads its output has all of it.
	lastWords = 15 * time.Second
)

func main() {
	listen := flag.String("listen", ":8080", "address to serve at")
	get := flag.String("get", "", "print what a URL answers and end, instead of serving")
	call := flag.String("call", "", "get a URL five times a second, each time over a new connection, and print what came of it")
	lookup := flag.String("lookup", "", "print a name's addresses and end, instead of serving")
	flag.Parse()
	var err error
	switch {
	case *get != "":
		err = fetch(os.Stdout, *get)
	case *call != "":
		err = callRepeatedly(*call)
	case *lookup != "":
		err = resolve(os.Stdout, *lookup)
	default:
		err = serve(*listen)
	}
	if err != nil {
		log.Fatal(err)
	}
}

func serve(listen string) error {
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answer := map[string]string{"host": host, "client": r.RemoteAddr, "path": r.URL.Path}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			log.Print(err)
		}
	})
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /get", forward(func(w io.Writer, r *http.Request) error { return fetch(w, r.FormValue("url")) }))
	mux.HandleFunc("GET /lookup", forward(func(w io.Writer, r *http.Request) error { return resolve(w, r.FormValue("name")) }))

	server := &http.Server{Addr: listen, Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	context.AfterFunc(ctx, func() { _ = server.Shutdown(context.Background()) })
	datagrams, err := net.ListenPacket("udp", listen)
	if err != nil {
		return err
	}
	go answerDatagrams(datagrams, host)
	log.Printf("%s serves at %s", host, listen)
	if err := server.ListenAndServe(); err != http.ErrServerClosed {
		return err
	}
	return nil
}

// answerDatagrams answers each one with the name of the pod.
func answerDatagrams(datagrams net.PacketConn, host string) {
	var read [1]byte
	for {
		_, from, err := datagrams.ReadFrom(read[:])
		if err == nil {
			_, err = datagrams.WriteTo([]byte(host), from)
		}
		if err != nil {
			log.Print(err)
		}
	}
}

func forward(do func(io.Writer, *http.Request) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := do(w, r); err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
		}
	}
}

func fetch(w io.Writer, url string) error { return fetchWith(&client, w, url) }

func fetchWith(client *http.Client, w io.Writer, url string) error {
	answer, err := client.Get(url)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("%s: %s", url, answer.Status)
	}
	_, err = io.Copy(w, answer.Body)
	return err
}

// callRepeatedly prints one line of JSON for each call, and "ended" after SIGTERM.
func callRepeatedly(url string) error {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	once := http.Client{Timeout: callTimeout, Transport: &http.Transport{DisableKeepAlives: true}}
	lines := json.NewEncoder(os.Stdout)
	ticks := time.NewTicker(callInterval)
	for {
		select {
		case <-ctx.Done():
			fmt.Println("ended")
			time.Sleep(lastWords)
			return nil
		case <-ticks.C:
		}
		begun := time.Now()
		failure := ""
		if err := fetchWith(&once, io.Discard, url); err != nil {
			failure = err.Error()
		}
		line := map[string]any{"begun": begun.Unix(), "milliseconds": time.Since(begun).Milliseconds(), "failure": failure}
		if err := lines.Encode(line); err != nil {
			return err
		}
	}
}

func resolve(w io.Writer, name string) error {
	addresses, err := net.LookupHost(name)
	if err != nil {
		return err
	}
	for _, address := range addresses {
		fmt.Fprintln(w, address)
	}
	return nil
}

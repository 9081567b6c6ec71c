package main

import (
	"bufio"
	"bytes"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/loopback"
	"github.com/holdfast-go/holdfast/cmd/holdfast/internal/order"
)

// start runs the command in a process of its own, which an interrupt can reach.
func start(t *testing.T, args ...string) (cmd *exec.Cmd, stdout *bufio.Scanner, stderr *bytes.Buffer) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("no interrupt can be sent there")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd = exec.CommandContext(t.Context(), self, args...)
	cmd.Env = append(os.Environ(), asCommand+"=1")
	stderr = &bytes.Buffer{}
	cmd.Stderr = stderr
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, bufio.NewScanner(pipe), stderr
}

// interrupt sends sig, reads what is left of stdout, and returns the exit code.
func interrupt(t *testing.T, cmd *exec.Cmd, stdout *bufio.Scanner, sig os.Signal) int {
	t.Helper()
	if err := cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
	sent := time.Now()
	for stdout.Scan() {
	}
	err := cmd.Wait()
	if took := time.Since(sent); took > 4*time.Second {
		t.Errorf("ended %v after the interrupt", took)
	}
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		t.Fatalf("ended with %v, want an exit code", err)
	}
	return exit.ExitCode()
}

func TestInterruptedRun(t *testing.T) {
	for _, sig := range []os.Signal{os.Interrupt, syscall.SIGTERM} {
		cmd, stdout, stderr := start(t, "lab", "run", "naive-slow")
		if !stdout.Scan() || !strings.HasPrefix(stdout.Text(), "Order takes ") {
			t.Errorf("first line %q, want who Order is", stdout.Text())
		}
		time.Sleep(300 * time.Millisecond) // the orders wait
		if code := interrupt(t, cmd, stdout, sig); code != exitInterrupted || stderr.String() != "holdfast: interrupted\n" {
			t.Errorf("%v: code %d, stderr %q", sig, code, stderr)
		}
	}
}

func TestServe(t *testing.T) {
	cmd, stdout, stderr := start(t, "lab", "serve", "--order-port", "0", "--payment-port", "0")
	var urls []string
	for stdout.Scan() && stdout.Text() != "Interrupt to stop." {
		urls = append(urls, regexp.MustCompile(`http://127\.0\.0\.1:\d+`).FindAllString(stdout.Text(), -1)...)
	}
	if len(urls) < 2 {
		t.Fatalf("no addresses printed; stderr %q", stderr)
	}
	payment, orders := urls[0], urls[1]
	client := loopback.NewClient()
	defer client.CloseIdleConnections()
	post := func(url string, reply any) {
		t.Helper()
		if _, err := loopback.Call(t.Context(), client, http.MethodPost, url, reply); err != nil {
			t.Fatal(err)
		}
	}

	var paid order.Answer
	post(orders+"/orders/order-1", &paid)
	if paid.Status != "PAID" {
		t.Errorf("answer %+v, want PAID", paid)
	}
	post(payment+"/admin/mode/down", nil)
	for range 4 {
		post(orders+"/orders/order-2", nil)
	}
	if !stdout.Scan() || !strings.Contains(stdout.Text(), "circuit closed → open: failure rate 80%") {
		t.Errorf("log %q, want that the circuit is open", stdout.Text())
	}
	post(payment+"/admin/mode/slow", nil)
	client.CloseIdleConnections()
	if code := interrupt(t, cmd, stdout, os.Interrupt); code != exitInterrupted || stderr.String() != "holdfast: interrupted\n" {
		t.Errorf("code %d, stderr %q", code, stderr)
	}
	if _, err := loopback.Call(t.Context(), client, http.MethodGet, orders+"/data2", nil); err == nil {
		t.Error("Order still answers")
	}
}

package fallback

import "fmt"

// join keeps the call's error beside the fallback's own, both reachable. A value
// that was called a failure brings no error: then the fallback's own stands alone.
func join(name string, err, own error) error {
	if err == nil {
		return own
	}
	return fmt.Errorf("%w; fallback %q: %w", err, name, own)
}

// Package systemd holds the unit of Freshet and its tests.
package systemd

package store

import (
	"errors"
	"sync"
	"testing"

	"github.com/freshet-io/freshet"
)

func TestNoUpdateIsLostWhenManyChangeTheSameThing(t *testing.T) {
	forEachStore(t, func(t *testing.T, s *Store) {
		user, app, topic := household(t, s, "ada@example.com")
		const writers, rounds = 4, 5
		inParallel(writers, func(int) {
			for range rounds {
				err := s.Update(t.Context(), func(tx *Tx) error {
					a, err := tx.LockUser(user.ID)
					if err != nil {
						return err
					}
					a.Quotas.Connections++
					return tx.SaveUser(a)
				})
				err = errors.Join(err, s.Update(t.Context(), func(tx *Tx) error {
					a, err := tx.LockApp(app.ID)
					if err != nil {
						return err
					}
					a.Name += "x"
					if err := tx.SaveApp(a); err != nil {
						return err
					}
					return tx.ReplaceKey(app.ID, freshet.PublisherKey, freshet.NewKey(freshet.PublisherKey), now, now)
				}), s.Update(t.Context(), func(tx *Tx) error {
					in, err := tx.LockTopic(topic.ID)
					if err != nil {
						return err
					}
					in.Topic.Name += "x"
					return tx.SaveTopic(&in.Topic)
				}))
				if err != nil {
					t.Error(err)
				}
			}
		})
		const n = writers * rounds
		if got := must(s.User(t.Context(), user.ID))(t).Quotas.Connections; got != user.Quotas.Connections+n {
			t.Errorf("%d increments of the user survived, want %d", got-user.Quotas.Connections, n)
		}
		in := must(s.Topic(t.Context(), topic.ID))(t)
		if got := len(in.App.Name) - len(app.Name); got != n {
			t.Errorf("%d changes of the app survived, want %d", got, n)
		}
		if got := len(in.Topic.Name) - len(topic.Name); got != n {
			t.Errorf("%d changes of the topic survived, want %d", got, n)
		}
	})
}

func TestTheTopicCountIsRightWhateverHappensAtOnce(t *testing.T) {
	forEachStore(t, func(t *testing.T, s *Store) {
		_, app, topic := household(t, s, "ada@example.com")
		var deletions sync.Map
		inParallel(4, func(i int) {
			mine := newTopic(app.ID, "mine")
			if err := s.Update(t.Context(), func(tx *Tx) error { return tx.CreateTopic(mine) }); err != nil {
				t.Error(err)
			}
			// All delete the same topic; one of them may.
			err := s.Update(t.Context(), func(tx *Tx) error { return tx.DeleteTopic(topic.ID) })
			if err != nil {
				wantKind(t, err, freshet.NotFound)
			} else {
				deletions.Store(i, true)
			}
			if i%2 == 0 {
				if err := s.Update(t.Context(), func(tx *Tx) error { return tx.DeleteTopic(mine.ID) }); err != nil {
					t.Error(err)
				}
			}
		})
		n := 0
		deletions.Range(func(any, any) bool { n++; return true })
		list := must(s.Topics(t.Context(), app.ID, Page{Limit: 100}))(t)
		if n != 1 || list.Total != 2 || len(list.Items) != 2 {
			t.Errorf("%d deletions, total %d, %d topics; want 1, 2, 2", n, list.Total, len(list.Items))
		}
	})
}

func TestASecretIsMadeOnceForAll(t *testing.T) {
	forEachStore(t, func(t *testing.T, s *Store) {
		var got [4][]byte
		inParallel(len(got), func(i int) {
			err := s.Update(t.Context(), func(tx *Tx) (err error) {
				got[i], err = tx.Secret("token", func() []byte { return []byte{0, 0xff, byte(i)} })
				return err
			})
			if err != nil {
				t.Error(err)
			}
		})
		for _, secret := range got {
			if len(secret) != 3 || string(secret) != string(got[0]) {
				t.Errorf("the secrets are %v", got)
			}
		}
		update(t, s, func(tx *Tx) error {
			other, err := tx.Secret("other", func() []byte { return []byte("x") })
			if string(other) != "x" {
				t.Errorf("the other secret is %q", other)
			}
			return err
		})
	})
}

func inParallel(n int, do func(i int)) {
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { do(i) })
	}
	all.Wait()
}

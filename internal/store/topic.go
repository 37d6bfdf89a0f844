package store

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/freshet-io/freshet"
)

// TopicInApp is a topic and the app it belongs to, without the app's keys.
type TopicInApp struct {
	Topic freshet.Topic
	App   freshet.App
}

// TopicListing is a page of an app's topics and the app itself, without its keys.
type TopicListing struct {
	App freshet.App
	Listing[freshet.Topic]
}

const topicColumns = `t.id, t.app_id, t.name, t.publisher_type, t.config, t.payload_type, t.item_id_path,
	t.created_at, t.updated_at`

// topicRow collects the columns of topicColumns.
type topicRow struct {
	topic                      freshet.Topic
	publisher, config, payload string
	itemIDPath                 string
	created, updated           int64
}

func (r *topicRow) dest() []any {
	t := &r.topic
	return []any{&t.ID, &t.AppID, &t.Name, &r.publisher, &r.config, &r.payload, &r.itemIDPath, &r.created, &r.updated}
}

func (r *topicRow) value() (freshet.Topic, error) {
	var c publisherConfig
	if err := json.Unmarshal([]byte(r.config), &c); err != nil {
		return freshet.Topic{}, fmt.Errorf("config of topic %s: %w", r.topic.ID, err)
	}
	p := &r.topic.Publisher
	p.Type, p.Payload.Type = freshet.PublisherType(r.publisher), freshet.PayloadType(r.payload)
	p.URL, p.PollEvery, p.ForcePublishing = c.URL, c.PollEvery.duration(), c.ForcePublishing
	p.Sealed, r.topic.AutoProvisioned = c.Sealed, c.AutoProvisioned
	if r.itemIDPath != "" {
		path, err := freshet.ParseItemPath(r.itemIDPath)
		if err != nil {
			return freshet.Topic{}, fmt.Errorf("item path of topic %s: %v", r.topic.ID, err)
		}
		p.Payload.ItemIDPath = path
	}
	r.topic.CreatedAt, r.topic.UpdatedAt = fromMillis(r.created), fromMillis(r.updated)
	return r.topic, nil
}

// publisherConfig is the JSON of topics.config. New settings are new members.
type publisherConfig struct {
	URL             string      `json:"url,omitempty"`
	PollEvery       *millisJSON `json:"poll_every_ms,omitempty"`
	ForcePublishing *bool       `json:"force_publishing,omitempty"`
	AutoProvisioned bool        `json:"auto_provisioned,omitempty"`
	Sealed          string      `json:"sealed,omitempty"`
}

// Topic returns the topic and its app.
func (s *Store) Topic(ctx context.Context, id string) (*TopicInApp, error) {
	return s.reader(ctx).topicInApp(id)
}

func (c conn) topicInApp(id string) (*TopicInApp, error) {
	if !isText(id) {
		return nil, notFound("topic")
	}
	var t topicRow
	var a appRow
	err := c.row(`SELECT `+topicColumns+`, `+appColumns+` FROM topics t JOIN apps a ON a.id = t.app_id WHERE t.id = $1`,
		[]any{id}, append(t.dest(), a.dest()...)...)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, notFound("topic")
	}
	if err != nil {
		return nil, err
	}
	topic, err := t.value()
	if err != nil {
		return nil, err
	}
	app, err := a.value()
	return &TopicInApp{Topic: topic, App: app}, err
}

// topicPage skips from whichever end of the listing is nearer; the app's topic_count tells which that is. Exactly one
// of the two branches has a limit above 0, and neither skips beyond the end of the listing. CASE stands for min and max,
// which the engines spell differently.
const topicPage = `
	SELECT a.topic_count, ` + appColumns + `, ` + topicColumns + `
	FROM apps a
	LEFT JOIN (
		SELECT * FROM (
			SELECT * FROM topics WHERE app_id = $1 ORDER BY id
			LIMIT (SELECT CASE WHEN CAST($2 AS BIGINT) <= topic_count / 2 THEN CAST($3 AS BIGINT) ELSE 0 END
				FROM apps WHERE id = $1)
			OFFSET $2
		) head
		UNION ALL
		SELECT * FROM (
			SELECT * FROM topics WHERE app_id = $1 ORDER BY id DESC
			LIMIT (SELECT CASE
					WHEN CAST($2 AS BIGINT) <= topic_count / 2 OR CAST($2 AS BIGINT) >= topic_count THEN 0
					WHEN CAST($2 AS BIGINT) + CAST($3 AS BIGINT) > topic_count THEN topic_count - CAST($2 AS BIGINT)
					ELSE CAST($3 AS BIGINT) END
				FROM apps WHERE id = $1)
			OFFSET (SELECT CASE
					WHEN CAST($2 AS BIGINT) + CAST($3 AS BIGINT) >= topic_count THEN 0
					ELSE topic_count - CAST($2 AS BIGINT) - CAST($3 AS BIGINT) END
				FROM apps WHERE id = $1)
		) tail
	) t ON TRUE
	WHERE a.id = $1
	ORDER BY t.id`

// Topics lists the app's topics, oldest first. Both ends of the listing cost the same.
func (s *Store) Topics(ctx context.Context, appID string, page Page) (TopicListing, error) {
	if !isText(appID) {
		return TopicListing{}, notFound("app")
	}
	var list TopicListing
	var app appRow
	offset, limit := page.args()
	err := s.reader(ctx).rows(topicPage, []any{appID, offset, limit}, func(scan scanner) error {
		var t topicRow
		if err := scan(append(append([]any{&list.Total}, app.dest()...), t.dest()...)...); err != nil || t.topic.ID == "" {
			return err
		}
		topic, err := t.value()
		list.Items = append(list.Items, topic)
		return err
	})
	if err != nil {
		return TopicListing{}, err
	}
	if app.app.ID == "" {
		return TopicListing{}, notFound("app")
	}
	list.App, err = app.value()
	return list, err
}

// PollerTopics lists topics of type http-poller whose identifiers come after the given one, in their order, without
// following them to their apps.
func (s *Store) PollerTopics(ctx context.Context, after string, limit int) ([]freshet.Topic, error) {
	var topics []freshet.Topic
	err := s.reader(ctx).rows(`SELECT `+topicColumns+` FROM topics t WHERE t.id > $1 AND t.publisher_type = 'http-poller'
		ORDER BY t.id LIMIT $2`, []any{after, int64(limit)}, func(scan scanner) error {
		var r topicRow
		if err := scan(r.dest()...); err != nil {
			return err
		}
		topic, err := r.value()
		topics = append(topics, topic)
		return err
	})
	return topics, err
}

// CreateTopic adds the topic to its app.
func (tx *Tx) CreateTopic(t *freshet.Topic) error {
	config, err := configText(t)
	if err != nil {
		return err
	}
	if err := tx.write("app", `UPDATE apps SET topic_count = topic_count + 1 WHERE id = $1`, t.AppID); err != nil {
		return err
	}
	p := &t.Publisher
	return tx.write("app", `INSERT INTO topics (id, app_id, name, publisher_type, config, payload_type, item_id_path,
			created_at, updated_at) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)`,
		t.ID, t.AppID, t.Name, string(p.Type), config, string(p.Payload.Type), p.Payload.ItemIDPath.String(),
		millis(t.CreatedAt), millis(t.UpdatedAt))
}

// TopicCount is how many topics the app has.
func (tx *Tx) TopicCount(appID string) (n int64, err error) {
	err = tx.row(`SELECT topic_count FROM apps WHERE id = $1`, []any{appID}, &n)
	if errors.Is(err, sql.ErrNoRows) {
		err = notFound("app")
	}
	tx.failed = err
	return n, err
}

// AccountOf returns the account that the app is of, as it is now; LockUser keeps it so.
func (tx *Tx) AccountOf(appID string) (*Account, error) {
	if !isText(appID) {
		return nil, notFound("app")
	}
	a, err := tx.account(`u.id = (SELECT user_id FROM apps WHERE id = $1)`, appID)
	if freshet.KindOf(err) == freshet.NotFound {
		return nil, notFound("app")
	}
	if err != nil {
		tx.failed = err
	}
	return a, err
}

// UserTopicCount is how many topics the apps of a user have together. It is exact for whoever holds the lock of the user, if all
// do who add topics.
func (tx *Tx) UserTopicCount(userID string) (n int64, err error) {
	err = tx.row(`SELECT CAST(COALESCE(SUM(topic_count), 0) AS BIGINT) FROM apps WHERE user_id = $1`, []any{userID}, &n)
	tx.failed = err
	return n, err
}

// LockTopic returns the topic and keeps others from changing it and its app until the transaction ends.
func (tx *Tx) LockTopic(id string) (*TopicInApp, error) {
	// The lock is the app's: all changes of topics go through it, and app before topic is the order of locks.
	err := tx.lock("topic", `UPDATE apps SET topic_count = topic_count
		WHERE id = (SELECT app_id FROM topics WHERE id = $1)`, id)
	if err != nil {
		return nil, err
	}
	return readLocked(tx, func() (*TopicInApp, error) { return tx.topicInApp(id) })
}

// SaveTopic replaces name, publisher and the time of the last change.
func (tx *Tx) SaveTopic(t *freshet.Topic) error {
	config, err := configText(t)
	if err != nil {
		return err
	}
	tx.changed(SubjectTopic, t.ID)
	p := &t.Publisher
	return tx.write("topic", `UPDATE topics SET name = $2, publisher_type = $3, config = $4, payload_type = $5,
			item_id_path = $6, updated_at = $7 WHERE id = $1`,
		t.ID, t.Name, string(p.Type), config, string(p.Payload.Type), p.Payload.ItemIDPath.String(), millis(t.UpdatedAt))
}

// DeleteTopic removes the topic.
func (tx *Tx) DeleteTopic(id string) error {
	tx.changed(SubjectTopic, id)
	err := tx.write("topic", `UPDATE apps SET topic_count = topic_count - 1
		WHERE id = (SELECT app_id FROM topics WHERE id = $1)`, id)
	if err != nil {
		return err
	}
	return tx.write("topic", `DELETE FROM topics WHERE id = $1`, id)
}

// TopicIDs lists the identifiers of the topics of an app, or of all apps of a user if there is no app.
func (s *Store) TopicIDs(ctx context.Context, userID, appID string) (ids []string, err error) {
	query, owner := topicsOfApp, appID
	if appID == "" {
		query, owner = topicsOfUser, userID
	}
	if !isText(owner) {
		return nil, nil
	}
	return s.reader(ctx).identifiers(query, owner)
}

const (
	topicsOfApp  = `SELECT id FROM topics WHERE app_id = $1`
	topicsOfUser = `SELECT t.id FROM topics t JOIN apps a ON a.id = t.app_id WHERE a.user_id = $1`
)

// TopicsOfApp lists the identifiers of the app's topics.
func (tx *Tx) TopicsOfApp(appID string) ([]string, error) {
	return tx.topicIDs(topicsOfApp, appID)
}

// TopicsOfUser lists the identifiers of all topics of the user.
func (tx *Tx) TopicsOfUser(userID string) ([]string, error) {
	return tx.topicIDs(topicsOfUser, userID)
}

func (tx *Tx) topicIDs(query, owner string) (ids []string, err error) {
	ids, err = tx.identifiers(query, owner)
	tx.failed = err
	return ids, err
}

func (c conn) identifiers(query, owner string) (ids []string, err error) {
	err = c.rows(query, []any{owner}, func(scan scanner) error {
		var id string
		err := scan(&id)
		ids = append(ids, id)
		return err
	})
	return ids, err
}

func configText(t *freshet.Topic) (string, error) {
	p := &t.Publisher
	text, err := json.Marshal(publisherConfig{
		URL:             p.URL,
		PollEvery:       toMillisJSON(p.PollEvery),
		ForcePublishing: p.ForcePublishing,
		AutoProvisioned: t.AutoProvisioned,
		Sealed:          p.Sealed,
	})
	return string(text), err
}

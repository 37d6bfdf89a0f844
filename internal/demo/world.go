package demo

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"
)

// quote is what a stock costs.
type quote struct {
	Symbol string  `json:"symbol"`
	Name   string  `json:"name"`
	Price  float64 `json:"price"`
	Change float64 `json:"change"` // per cent since the demo began
	opened float64
}

// market is a document of which little changes at a time.
type market struct{ quotes []quote }

func newMarket() *market {
	m := &market{}
	for symbol, name := range map[string]string{
		"ACME": "Acme Corporation", "BOLT": "Bolt Bicycles", "CIRR": "Cirrus Air", "DELT": "Delta Water", "EMBR": "Ember Foods",
		"FJRD": "Fjord Energy", "GLDE": "Glide Trains", "HRTH": "Hearth Homes", "INIT": "Initech", "JUNO": "Juno Health",
	} {
		price := cents(20 + 480*rand.Float64())
		m.quotes = append(m.quotes, quote{Symbol: symbol, Name: name, Price: price, opened: price})
	}
	for i := range m.quotes { // maps have no order, tickers do
		for j := i; j > 0 && m.quotes[j].Symbol < m.quotes[j-1].Symbol; j-- {
			m.quotes[j], m.quotes[j-1] = m.quotes[j-1], m.quotes[j]
		}
	}
	return m
}

func (m *market) next(time.Time) any {
	for range 1 + rand.IntN(3) {
		q := &m.quotes[rand.IntN(len(m.quotes))]
		q.Price = cents(q.Price * (1 + (rand.Float64()-0.5)/100))
		q.Change = cents(100 * (q.Price/q.opened - 1))
	}
	return map[string]any{"quotes": m.quotes}
}

func cents(x float64) float64 { return math.Round(100*x) / 100 }

// story is a piece of news.
type story struct {
	ID      int    `json:"id"`
	Section string `json:"section"`
	Title   string `json:"title"`
	At      string `json:"at"`
}

// newsFeed is a list: what is new comes first, and what is old falls out at the end.
type newsFeed struct {
	stories []story
	count   int
}

const feedLength = 20

func newNewsFeed() *newsFeed { return &newsFeed{} }

func (f *newsFeed) next(now time.Time) any {
	pick := func(words ...string) string { return words[rand.IntN(len(words))] }
	f.count++
	title := fmt.Sprintf("%s %s %s", pick("Harbour", "Council", "Orchestra", "Library", "Observatory", "Bakery"),
		pick("opens", "plans", "celebrates", "repairs", "rediscovers"), pick("its old bridge", "a night market", "the long winter", "a new choir", "the east garden"))
	s := story{ID: f.count, Section: pick("city", "science", "culture", "sport"), Title: title, At: now.UTC().Format(time.RFC3339)}
	f.stories = append([]story{s}, f.stories...)
	f.stories = f.stories[:min(len(f.stories), feedLength)]
	return f.stories
}

// sensor is an item: published alone, it replaces its namesake.
type sensor struct {
	ID          string  `json:"id"`
	Room        string  `json:"room"`
	Temperature float64 `json:"temperature"`
	Humidity    float64 `json:"humidity"`
	At          string  `json:"at"`
}

type house struct {
	sensors []sensor
	all     bool // have been published
}

func newHouse() *house {
	h := &house{}
	for i, room := range []string{"kitchen", "hall", "study", "bedroom", "cellar", "garden", "attic", "garage"} {
		h.sensors = append(h.sensors, sensor{ID: fmt.Sprintf("s%d", i+1), Room: room, Temperature: cents(15 + 8*rand.Float64()), Humidity: cents(40 + 20*rand.Float64())})
	}
	return h
}

// next is everything at first and then only what changed.
func (h *house) next(now time.Time) any {
	at := now.UTC().Format(time.RFC3339)
	if !h.all {
		h.all = true
		for i := range h.sensors {
			h.sensors[i].At = at
		}
		return h.sensors
	}
	s := &h.sensors[rand.IntN(len(h.sensors))]
	s.Temperature = cents(s.Temperature + (rand.Float64()-0.5)/2)
	s.Humidity = cents(s.Humidity + (rand.Float64() - 0.5))
	s.At = at
	return []sensor{*s}
}

// city is a place with weather.
type city struct {
	Name        string  `json:"name"`
	Temperature float64 `json:"temperature"`
	Wind        float64 `json:"wind"`
}

// weatherAt depends on the time alone, as if somebody measured it: one place after the other, every two seconds.
func weatherAt(now time.Time) any {
	names := []string{"Bergen", "Lisbon", "Naples", "Riga", "Tartu", "Utrecht"}
	var cities []city
	for i, name := range names {
		turn := (now.Unix()/2 + int64(i)) / int64(len(names))
		t := 0.7*float64(turn) + float64(i)
		cities = append(cities, city{Name: name, Temperature: math.Round(10*(14+6*math.Sin(t))) / 10, Wind: math.Round(10*(5+4*math.Cos(1.7*t))) / 10})
	}
	return map[string]any{"cities": cities}
}

package diff

import (
	"math/rand/v2"
	"strconv"
)

// catalogue is a document of 1 MB in which ten things change.
type catalogue struct{ products []product }

type product struct {
	id, price, stock int
	title, text      string
	tags             []string
}

func (c *catalogue) product(r *rand.Rand, id int) product {
	return product{id, 100 + r.IntN(99999), r.IntN(500), sentence(r, 3), sentence(r, 25), []string{words[r.IntN(24)], words[r.IntN(24)]}}
}
func (c *catalogue) start(r *rand.Rand) {
	for i := range 3000 {
		c.products = append(c.products, c.product(r, i))
	}
}
func (c *catalogue) step(r *rand.Rand) {
	for k := range 10 {
		i := r.IntN(len(c.products))
		switch k {
		case 0:
			c.products = append(c.products[:i], c.products[i+1:]...)
		case 1, 2:
			fresh := c.product(r, 10000+r.IntN(90000))
			c.products = append(c.products[:i], append([]product{fresh}, c.products[i:]...)...)
		case 3:
			c.products[i].text = sentence(r, 25)
		default:
			c.products[i].price += r.IntN(100) - 50
			c.products[i].stock = r.IntN(500)
		}
	}
}
func (c *catalogue) write(w *writer) {
	w.open('{')
	w.key("shop")
	w.str("example")
	w.key("products")
	w.open('[')
	for _, p := range c.products {
		w.open('{')
		w.key("id")
		w.num(p.id)
		w.key("title")
		w.str(p.title)
		w.key("description")
		w.str(p.text)
		w.key("price")
		w.raw(`{"amount":` + strconv.Itoa(p.price) + `,"currency":"EUR"}`)
		w.key("stock")
		w.num(p.stock)
		w.key("tags")
		w.open('[')
		for _, t := range p.tags {
			w.str(t)
		}
		w.close(']')
		w.close('}')
	}
	w.close(']')
	w.close('}')
}

// chat is a log that grows at its end.
type chat struct{ messages []string }

func (c *chat) start(r *rand.Rand) {
	for range 500 {
		c.say(r)
	}
}
func (c *chat) say(r *rand.Rand) {
	var w writer
	w.open('{')
	w.key("id")
	w.num(len(c.messages) + 1)
	w.key("from")
	w.str(words[r.IntN(len(words))])
	w.key("at")
	w.num(1700000000 + 7*len(c.messages))
	w.key("text")
	w.str(sentence(r, 5+r.IntN(12)))
	w.close('}')
	c.messages = append(c.messages, string(w.text))
}
func (c *chat) step(r *rand.Rand) {
	for range 1 + r.IntN(4) {
		c.say(r)
	}
}
func (c *chat) write(w *writer) {
	w.open('{')
	w.key("room")
	w.str("general")
	w.key("messages")
	w.open('[')
	for _, m := range c.messages {
		w.raw(m)
	}
	w.close(']')
	w.close('}')
}

// leaderboard is players in the order of their points.
type leaderboard struct{ players []player }

type player struct {
	id, points int
	name       string
}

func (l *leaderboard) start(r *rand.Rand) {
	for i := range 200 {
		l.players = append(l.players, player{i, 10000 - 40*i, sentence(r, 2)})
	}
}
func (l *leaderboard) step(r *rand.Rand) {
	for range 6 {
		i := r.IntN(len(l.players))
		l.players[i].points += r.IntN(120)
		for ; i > 0 && l.players[i].points > l.players[i-1].points; i-- {
			l.players[i], l.players[i-1] = l.players[i-1], l.players[i]
		}
	}
}
func (l *leaderboard) write(w *writer) {
	w.open('[')
	for _, p := range l.players {
		w.open('{')
		w.key("id")
		w.num(p.id)
		w.key("name")
		w.str(p.name)
		w.key("points")
		w.num(p.points)
		w.close('}')
	}
	w.close(']')
}

// playlist is tracks that somebody moves about.
type playlist struct{ tracks []string }

func (p *playlist) start(r *rand.Rand) {
	for i := range 300 {
		p.tracks = append(p.tracks, `{"id":"`+name("trk", i)+`","title":"`+sentence(r, 4)+`","seconds":`+strconv.Itoa(120+r.IntN(300))+`}`)
	}
}
func (p *playlist) step(r *rand.Rand) {
	for range 3 {
		from, to := r.IntN(len(p.tracks)), r.IntN(len(p.tracks))
		t := p.tracks[from]
		p.tracks = append(p.tracks[:from], p.tracks[from+1:]...)
		p.tracks = append(p.tracks[:to], append([]string{t}, p.tracks[to:]...)...)
	}
}
func (p *playlist) write(w *writer) {
	w.open('{')
	w.key("tracks")
	w.open('[')
	for _, t := range p.tracks {
		w.raw(t)
	}
	w.close(']')
	w.close('}')
}

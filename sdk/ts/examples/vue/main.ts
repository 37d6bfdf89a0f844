import { createApp, defineComponent, h } from 'vue';
import { useFreshet } from './useFreshet';

interface Quotes {
  quotes: { symbol: string; price: number }[];
}

const Ticker = defineComponent({
  props: { topic: { type: String, required: true }, server: { type: String, required: true } },
  setup(props) {
    const { document, state, error } = useFreshet<Quotes>(props.topic, { server: props.server });
    return () => {
      if (error.value?.fatal) return h('p', { role: 'alert' }, error.value.message);
      if (!document.value) return h('p', `${state.value}…`);
      return h(
        'ul',
        document.value.quotes.map(({ symbol, price }) => h('li', { key: symbol }, `${symbol} ${price}`)),
      );
    };
  },
});

const { topic = '', server = '' } = Object.fromEntries(new URLSearchParams(location.search));
createApp(Ticker, { topic, server }).mount('#app');

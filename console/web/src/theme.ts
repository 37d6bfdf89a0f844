// Runs before the first paint, so that a chosen theme never flashes. Only a taste is remembered here, never a secret.
const chosen = localStorage.getItem('freshet-theme');
if (chosen === 'light' || chosen === 'dark') document.documentElement.dataset.theme = chosen;
